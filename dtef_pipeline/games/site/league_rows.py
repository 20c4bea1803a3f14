"""Data of the pages: the results of one version of each scenario, and the episodes of the snapshots that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.games.contract import GameMetric
from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.game_pairs import (
    PLAYED_COVERAGE,
    UNPLAYED_READS,
    add_game_coverage,
    add_unplayed_note,
    clear_unplayed_note,
    compute_shared_results,
    select_shown_versions,
    set_game_coverage,
    sort_players,
)
from dtef_pipeline.games.metrics import EXPECTED_RETURN, merge_metrics
from dtef_pipeline.games.packs import Pack, find_pack
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, GAME_RESULTS_READS
from dtef_pipeline.games.personas import BASELINE_PREFIX, PERSONA_STATUS, list_persona_statuses
from dtef_pipeline.games.site.game_labels import GameDocuments, PlayerLabels, format_scenario_title
from dtef_pipeline.games.tables import PERSONA_RESULTS
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.content import Estimate, Link
from dtef_pipeline.site.paths import choose_file_names
from dtef_pipeline.statistics.cluster_robust import estimate_ratios

FAMILY_ORDER = ("expected value", "composite", "efficacy", "efficiency", "risk", "social", "safety", "form")
PLAYER_KEYS = ["persona", "model", "model_variant", "snapshot"]
_STATES = (
    "(SELECT league, scenario, version, persona, model, model_variant, status, reason, count(*) AS n FROM episodes "
    "WHERE status <> 'played' GROUP BY ALL)"
)
_EPISODE_COLUMNS = (
    *("league", "scenario", "version", "episode_id", "item_id", *PLAYER_KEYS, "opponent", "cluster", "draw", "seat"),
    *("outcome", "reward", "n_turns", "illegal", "refused", "forfeits", "defaults", "flags"),
)
_NAME_COLUMNS = ("name", "as_persona", "player", "is_baseline")
"""Columns added to rows of players: the model's name, its persona in words, both together, and whether it is a baseline."""


@dataclass(frozen=True)
class ScenarioResults:
    """One version of a scenario: the version in play, or else the latest that was played."""

    name: str
    """League and scenario."""
    path: str
    """Its page."""
    version: int
    rows: StoredRows
    labels: PlayerLabels
    results: pd.DataFrame
    """Rows of `persona_results`, best first, with `player`, `persona_status`, `is_baseline`, `coverage` and notes."""
    matchups: pd.DataFrame
    """Rows of the mean reward against each opponent."""
    pack: Pack | None = None
    """None: the scenario is no longer installed."""
    older: list[int] = field(default_factory=list)
    """Earlier played versions."""
    shared: pd.DataFrame = field(default_factory=pd.DataFrame)
    """As `results`, over only the games that all players have; empty: they have the same games, or none in common."""

    @property
    def title(self) -> str:
        return format_scenario_title(self.name)

    @property
    def link(self) -> Link:
        return Link(self.title, self.path)

    @property
    def key_values(self) -> dict[str, Any]:
        """Return the key columns shared by its rows in tables."""
        league, _, scenario = self.name.partition("/")
        return {"league": league, "scenario": scenario, "version": self.version}

    @cached_property
    def overall(self) -> pd.DataFrame:
        """Return the results over all opponents."""
        return self.results[self.results["opponent"] == ALL_OPPONENTS]

    @cached_property
    def _rows_per_metric(self) -> dict[str, pd.DataFrame]:
        return {str(name): rows for name, rows in self.overall.groupby("metric", sort=False)}

    def filter_by_metric(self, metric: str = EXPECTED_RETURN) -> pd.DataFrame:
        """Return one row per player over all opponents, best first."""
        return self._rows_per_metric.get(metric, self.overall.iloc[:0])

    @cached_property
    def unit(self) -> str:
        """The unit of rewards."""
        units = self.filter_by_metric()["unit"]
        return str(units.iloc[0]) if len(units) else ""

    @cached_property
    def descriptions(self) -> Mapping[str, GameMetric]:
        """Return the descriptions of metrics, if the scenario is installed."""
        return merge_metrics(self.pack.scenario.unit, self.pack.scenario.metrics) if self.pack else {}

    @property
    def playable(self) -> Pack | None:
        """Return the pack if it has the version of these results, so that episodes can be replayed."""
        return self.pack if self.pack and self.pack.manifest.version == self.version else None

    @cached_property
    def metrics(self) -> list[str]:
        """Return the metrics with a mean of some player, the most important first."""
        rows = self.overall[self.overall["mean"].notna()]
        families = dict(zip(rows["metric"], rows["metric_family"], strict=True))
        order = {name: index for index, name in enumerate(self.descriptions)}
        return sorted(families, key=lambda name: (_rank_family(families[name]), order.get(name, len(order)), name))

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """Return the finished episodes of the snapshots on the boards: one row each, with `player`, `is_baseline`."""
        if not self.rows.has("episodes"):
            none = pd.DataFrame(columns=[*_EPISODE_COLUMNS, *_NAME_COLUMNS])
            return none.astype({"reward": float, "is_baseline": bool})
        where = {**self.key_values, "status": PLAYED_EPISODE}
        frame: pd.DataFrame = self.rows.table("episodes", _EPISODE_COLUMNS, where, ("episode_id",)).to_pandas()
        players = self.overall[[*PLAYER_KEYS, *_NAME_COLUMNS]].drop_duplicates(PLAYER_KEYS)
        return frame.merge(players, on=PLAYER_KEYS)

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """Return the mean reward over draws, with games (item_id, cluster) as rows and players as columns; NaN: the player lacks the
        game."""
        return self.episodes.pivot_table(index=["item_id", "cluster"], columns="player", values="reward", aggfunc="mean")


def _rank_family(family: str) -> int:
    return FAMILY_ORDER.index(family) if family in FAMILY_ORDER else len(FAMILY_ORDER)


def load_scenario_results(rows: StoredRows, documents: GameDocuments) -> list[ScenarioResults]:
    """Load all scenarios with episodes or results, by name."""
    connection, every = rows.connection, rows.frame("persona_results")
    every = every if len(every) else PERSONA_RESULTS.empty_table().to_pandas()
    frame = select_shown_versions(every, documents.manifests)
    labels = PlayerLabels(dict(zip(frame["model_variant"], rename_variants(frame)["model"], strict=True)), documents.personas)
    coverage, shared = set_game_coverage(frame, np.nan), frame.iloc[:0]
    if all(map(rows.has, GAME_RESULTS_READS)):
        coverage = add_game_coverage(connection, frame)
        shared = compute_shared_results(connection, _filter_unlike_games(coverage))
    add_note = add_unplayed_note if all(map(rows.has, UNPLAYED_READS)) else lambda _, table: clear_unplayed_note(table)
    results, shared = (_add_players(sort_players(add_note(connection, part)), labels) for part in (coverage, shared))
    matchups = results[(results["metric"] == EXPECTED_RETURN) & (results["opponent"] != ALL_OPPONENTS)]
    versions = _list_versions(rows, results)
    files = choose_file_names(name.replace("/", ".") for name in versions)
    return [
        ScenarioResults(
            name,
            f"games/scenarios/{files[name.replace('/', '.')]}.html",
            numbers[-1],
            rows,
            labels,
            _filter_scenario(results, name),
            _filter_scenario(matchups, name),
            find_pack(name, documents.manifests),
            numbers[:-1],
            _filter_scenario(shared, name),
        )
        for name, numbers in sorted(versions.items())
    ]


def _filter_unlike_games(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of scenarios whose players have not all played the same games."""
    is_complete = results.groupby(["league", "scenario"])[PLAYED_COVERAGE].transform("min") >= 1
    return results[~is_complete & results[PLAYED_COVERAGE].notna()]


def _list_versions(rows: StoredRows, results: pd.DataFrame) -> dict[str, list[int]]:
    """List the played versions of each scenario, the one on the pages last."""
    keys, versions = ("league", "scenario", "version"), dict[str, set[int]]()
    for row in rows.rows(f"(SELECT DISTINCT {', '.join(keys)} FROM episodes)", keys, {}) if rows.has("episodes") else []:
        versions.setdefault(f"{row['league']}/{row['scenario']}", set()).add(int(row["version"]))
    names = results["league"] + "/" + results["scenario"]
    shown_versions = dict(zip(names, results["version"].astype(int), strict=True))
    by_scenario = {}
    for name in {*versions, *shown_versions}:
        last = shown_versions.get(name) or max(versions[name])
        by_scenario[name] = [*sorted(version for version in versions.get(name, set()) if version < last), last]
    return by_scenario


def _filter_scenario(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame[frame["league"] + "/" + frame["scenario"] == name] if len(frame) else frame


def _add_players(frame: pd.DataFrame, labels: PlayerLabels) -> pd.DataFrame:
    names = list(map(labels.model, frame["model_variant"], frame["model"]))
    return frame.assign(
        name=names,
        as_persona=[labels.persona(persona) if persona else "" for persona in frame["persona"]],
        player=list(map(labels.name_player, names, frame["persona"])),
        is_baseline=frame["model"].str.startswith(BASELINE_PREFIX),
        **{PERSONA_STATUS: list_persona_statuses(frame["persona"].tolist(), labels.personas)},
    )


def list_unplayed(scenarios: Sequence[ScenarioResults]) -> Iterator[dict[str, Any]]:
    """List the unfinished episodes of these versions: one row per scenario, player, state and reason."""
    versions = {result.name: result for result in scenarios}
    columns = ("league", "scenario", "version", "persona", "model", "model_variant", "status", "reason", "n")
    rows = scenarios[0].rows if scenarios else None
    for row in rows.rows(_STATES, columns, {}, columns[:-1]) if rows and rows.has("episodes") else []:
        scenario = versions.get(f"{row['league']}/{row['scenario']}")
        if scenario and scenario.version == row["version"]:
            player = scenario.labels.player(row["persona"], row["model_variant"], row["model"])
            yield {"scenario": scenario.link, "player": player, "status": row["status"], "reason": row["reason"], "n": row["n"]}


NO_ESTIMATE = Estimate(None)


def compare_on_seeds(rewards: pd.DataFrame, player: str, rival: str) -> Estimate:
    """Return the mean difference of rewards with its 95% interval by seeds, over the games (seed, seat, opponent) that both players have.

    `rewards`: games by players, see `ScenarioResults.rewards`. Unknown without a common game; no interval with fewer than 5 seeds.
    """
    if player not in rewards or rival not in rewards:
        return NO_ESTIMATE
    difference = (rewards[player] - rewards[rival]).to_numpy(dtype=np.float64)
    is_shared = ~np.isnan(difference)
    if not is_shared.any():
        return NO_ESTIMATE
    seeds = np.unique(rewards.index.get_level_values("cluster")[is_shared], return_inverse=True)[1]

    sums = np.bincount(seeds, difference[is_shared]).astype(np.float64)
    ratios = estimate_ratios(sums[:, None], np.bincount(seeds).astype(np.float64)[:, None])
    low, high = ratios.interval()
    return Estimate(float(ratios.value[0]), float(low[0]), float(high[0]))


def describe_difference(difference: Estimate) -> str:
    """Return `no clear difference` if the interval contains 0, else `better` or `worse`; `not tested` without an interval."""
    low, high = difference.low, difference.high
    if low is None or high is None or np.isnan(low):
        return "not tested"
    return "better" if low > 0 else "worse" if high < 0 else "no clear difference"
