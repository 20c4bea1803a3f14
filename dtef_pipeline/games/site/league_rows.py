"""Data of the pages: the results of one version of each scenario, and the episodes of the snapshots that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards.cells import register_missing_tables
from dtef_pipeline.games.contract import EXPECTED_RETURN, SUCCESS_RATE
from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.game_pairs import UNPLAYED_NOTE, add_unplayed_note, select_shown_versions, sort_players
from dtef_pipeline.games.packs import Pack, find_pack
from dtef_pipeline.games.persona_results import ALL_OPPONENTS
from dtef_pipeline.games.personas import BASELINE_PREFIX, list_persona_statuses, mark_unapproved
from dtef_pipeline.games.site.game_labels import GameDocuments, PlayerLabels, format_scenario_title, title_personas
from dtef_pipeline.games.tables import EPISODES
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.content import Estimate, Link, is_unknown
from dtef_pipeline.site.paths import choose_file_names
from dtef_pipeline.statistics.cluster_robust import estimate_ratios

MAX_EPISODES = 200
"""Largest number of listed episodes of a scenario."""
_PLAYER_KEYS = ["league", "scenario", "version", "persona", "model", "model_variant", "snapshot"]
_NAMES = ["name", "as_persona", "player", "is_reference"]
"""Columns added to rows of players: the model's name, its persona in words, both together, and whether it is a baseline."""
_EPISODE_COLUMNS = "episode_id, item_id, opponent, cluster, draw, seat, outcome, reward, n_turns, illegal, refused, forfeits"
_EPISODES = f"""
    WITH played AS (
        SELECT {", ".join((*_PLAYER_KEYS, *_NAMES, _EPISODE_COLUMNS))},
            reward - avg(reward) OVER (PARTITION BY league, scenario, item_id) AS above,
            above / nullif(stddev_pop(reward) OVER (PARTITION BY league, scenario), 0) AS gap,
            CASE WHEN NOT is_reference THEN reward END AS of_model
        FROM episodes JOIN shown_names USING ({", ".join(_PLAYER_KEYS)}) WHERE status = '{PLAYED_EPISODE}'
    ), placed AS (
        SELECT * EXCLUDE (of_model), max(of_model) OVER game - min(of_model) OVER game AS spread,
            row_number() OVER (own_episodes ORDER BY above, episode_id) <= 2
                OR row_number() OVER (own_episodes ORDER BY reward DESC, episode_id) <= 2
                OR forfeits > 0 AND row_number() OVER (own_episodes ORDER BY forfeits DESC NULLS LAST, episode_id) <= 2 AS is_extreme
        FROM played WINDOW game AS (PARTITION BY league, scenario, item_id),
            own_episodes AS (PARTITION BY league, scenario, player)
    )
    SELECT * EXCLUDE (spread, is_extreme), row_number() OVER (
        PARTITION BY league, scenario ORDER BY NOT is_extreme, spread DESC NULLS LAST, md5(item_id), player, draw) <= ? AS is_listed
    FROM placed ORDER BY player, item_id, draw, episode_id
"""
"""The finished episodes of the players in `shown_names`.

`above`: the reward minus the mean of all players on the same game; `gap`: the same in standard deviations of the scenario's rewards.
`is_listed`: of each player the best and the worst two and two that it forfeited, then those of the games on which models differ most;
of equal games those with the lowest hash of their ids."""
UNPLAYED_EPISODES = f"""
    WITH players AS (SELECT DISTINCT {", ".join(_PLAYER_KEYS[:-1])}, player FROM shown_names)
    SELECT league || '/' || scenario, player, reason, count(*) FROM episodes JOIN players USING ({", ".join(_PLAYER_KEYS[:-1])})
    WHERE status <> '{PLAYED_EPISODE}' GROUP BY ALL ORDER BY ALL
"""
"""The number of the other episodes of these players in any snapshot, by scenario, player and reason."""


@dataclass(frozen=True)
class ScenarioResults:
    """One version of a scenario: the version in play, or else the latest with results."""

    name: str
    """League and scenario."""
    link: Link
    """Its title and its page."""
    labels: PlayerLabels
    pack: Pack | None
    """None: the scenario is no longer installed."""
    results: pd.DataFrame
    """Rows of `persona_results`, best first, with `note` and the columns of `_NAMES`."""
    episodes: pd.DataFrame
    """Its finished episodes, see `_EPISODES`."""

    @property
    def version(self) -> int:
        return int(self.results["version"].iloc[0])

    @property
    def playable(self) -> Pack | None:
        """Return the pack if it has the version of these results, so that episodes can be replayed."""
        return self.pack if self.pack and self.pack.manifest.version == self.version else None

    @cached_property
    def overall(self) -> pd.DataFrame:
        """Return the results over all opponents."""
        return self.results[self.results["opponent"] == ALL_OPPONENTS]

    @cached_property
    def players(self) -> pd.DataFrame:
        """Return the mean reward of each player, best first, with `won` (0-1) and `games`, the set of its games."""
        rows = self.overall[self.overall["metric"] == EXPECTED_RETURN]
        successes = self.overall[self.overall["metric"] == SUCCESS_RATE]
        won = dict(zip(successes["player"], successes["mean"], strict=True))
        games = self.episodes.groupby("player")["item_id"].agg(set).to_dict()
        return rows.assign(won=rows["player"].map(won), games=[games.get(name, set()) for name in rows["player"]])

    @cached_property
    def unit(self) -> str:
        """The unit of rewards."""
        return next(iter(self.players["unit"]), "")

    @cached_property
    def _rewards(self) -> pd.DataFrame:
        """Return the mean reward over draws, with games (item_id, cluster) as rows and players as columns; NaN: the player lacks the
        game."""
        return self.episodes.pivot_table(index=["item_id", "cluster"], columns="player", values="reward", aggfunc="mean")

    def compare(self, player: str, rival: str) -> Estimate:
        """Return the mean difference of rewards with its 95% interval by seeds, over the games (seed, seat, opponent) that both players
        have. Unknown without a common game; no interval with fewer than 5 seeds."""
        if not {player, rival} <= set(self._rewards):
            return Estimate(None)
        difference = (self._rewards[player] - self._rewards[rival]).dropna()
        if not len(difference):
            return Estimate(None)
        seeds = difference.groupby("cluster").agg(["sum", "count"]).to_numpy(dtype=np.float64)
        ratios = estimate_ratios(seeds[:, :1], seeds[:, 1:])
        low, high = ratios.interval()
        return Estimate(float(ratios.value[0]), float(low[0]), float(high[0]))


def read_mean(row: Mapping[Any, Any]) -> Estimate:
    """Return the mean of a row of results with its interval."""
    return Estimate(row["mean"], row["low"], row["high"])


def describe_difference(difference: Estimate) -> str:
    """Return `no clear difference` if the interval contains 0, else `better` or `worse`; `not tested` without an interval."""
    low, high = difference.low, difference.high
    if low is None or high is None or np.isnan(low):
        return "not tested"
    return "better" if low > 0 else "worse" if high < 0 else "no clear difference"


def load_scenario_results(rows: StoredRows, documents: GameDocuments) -> list[ScenarioResults]:
    """Load all scenarios with results, by name."""
    connection = rows.connection
    register_missing_tables(connection, {"episodes": EPISODES})
    results = select_shown_versions(rows.frame("persona_results"), documents.manifests)
    names = dict(zip(results["model_variant"], rename_variants(results)["model"], strict=True))
    labels = PlayerLabels(names, title_personas(documents.personas))
    results = _add_names(sort_players(add_unplayed_note(connection, results)), labels, documents)
    connection.register("shown_names", results[[*_PLAYER_KEYS, *_NAMES]].drop_duplicates())
    episodes = connection.sql(_EPISODES, params=[MAX_EPISODES]).to_arrow_table().to_pandas()
    parts = {str(name): part for name, part in results.groupby(results["league"] + "/" + results["scenario"])}
    files = choose_file_names(name.replace("/", ".") for name in parts)
    return [
        ScenarioResults(
            name,
            Link(format_scenario_title(name), f"games/scenarios/{files[name.replace('/', '.')]}.html"),
            labels,
            find_pack(name, documents.manifests),
            part,
            episodes[episodes["league"] + "/" + episodes["scenario"] == name],
        )
        for name, part in parts.items()
    ]


def _add_names(frame: pd.DataFrame, labels: PlayerLabels, documents: GameDocuments) -> pd.DataFrame:
    """Add the names of players, and `note`: why a mean has no interval, what was not played, and whether the persona is not approved."""
    marks = map(mark_unapproved, list_persona_statuses(frame["persona"].tolist(), documents.personas))
    remarks = zip(frame["reason"], frame[UNPLAYED_NOTE], [f"a {mark}" if mark else "" for mark in marks], strict=True)
    return frame.assign(
        name=list(map(labels.model, frame["model_variant"], frame["model"])),
        as_persona=[labels.personas.get(persona, persona) for persona in frame["persona"]],
        player=list(map(labels.player, frame["persona"], frame["model_variant"], frame["model"])),
        is_reference=frame["model"].str.startswith(BASELINE_PREFIX),
        note=["; ".join(str(remark) for remark in row if not is_unknown(remark)) for row in remarks],
    )
