"""What the pages are made of: of each scenario the results of one version, and the episodes of the snapshots that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.games.common_games import (
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
from dtef_pipeline.games.contract import GameMetric
from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.metrics import BESIDE_METRICS, EXPECTED_RETURN, merge_metrics
from dtef_pipeline.games.packs import Pack, find_pack
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, GAME_RESULTS_READS
from dtef_pipeline.games.personas import BASELINE_PREFIX, PERSONA_STATUS, list_persona_statuses
from dtef_pipeline.games.site.game_labels import GameDocuments, PlayerLabels, format_scenario_title
from dtef_pipeline.games.tables import PERSONA_RESULTS
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.content import Link
from dtef_pipeline.site.paths import choose_file_names

FAMILY_ORDER = ("expected value", "composite", "efficacy", "efficiency", "risk", "social", "safety", "form")
PLAYER_KEYS = ["persona", "model", "model_variant", "snapshot"]
_TABLES_OF_VERSIONS = ("episodes", "strategy_values")
_STATES = (
    "(SELECT league, scenario, version, persona, model, model_variant, status, reason, count(*) AS n FROM episodes "
    "WHERE status <> 'played' GROUP BY ALL)"
)
_OF_EPISODE = (
    *("league", "scenario", "version", "episode_id", "item_id", *PLAYER_KEYS, "opponent", "cluster", "draw", "seat"),
    *("outcome", "reward", "n_turns", "illegal", "refused", "forfeits", "defaults", "flags"),
)
_NAME_COLUMNS = ("name", "as_persona", "player", "is_baseline")
"""Columns that rows of players get: the model's name, its persona in words, both together, and whether it is a baseline."""


@dataclass(frozen=True)
class ScenarioResults:
    """One version of a scenario: the one in play, or else the latest that was played."""

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
    """The rows of the mean reward against each opponent."""
    pack: Pack | None = None
    """None: the scenario is not installed any more."""
    older: list[int] = field(default_factory=list)
    """Earlier versions that were played, too."""
    shared: pd.DataFrame = field(default_factory=pd.DataFrame)
    """As `results`, of the games alone that all players have; none: they have the same games, or none in common."""

    @property
    def title(self) -> str:
        return format_scenario_title(self.name)

    @property
    def link(self) -> Link:
        return Link(self.title, self.path)

    @property
    def where(self) -> dict[str, Any]:
        """The columns that its rows in tables have in common."""
        league, _, scenario = self.name.partition("/")
        return {"league": league, "scenario": scenario, "version": self.version}

    @cached_property
    def overall(self) -> pd.DataFrame:
        """The results over all opponents."""
        return self.results[self.results["opponent"] == ALL_OPPONENTS]

    @cached_property
    def _rows_per_metric(self) -> dict[str, pd.DataFrame]:
        return {str(name): rows for name, rows in self.overall.groupby("metric", sort=False)}

    def filter_by_metric(self, metric: str = EXPECTED_RETURN) -> pd.DataFrame:
        """One row per player over all opponents, the best first."""
        return self._rows_per_metric.get(metric, self.overall.iloc[:0])

    @cached_property
    def unit(self) -> str:
        """The unit of rewards."""
        units = self.filter_by_metric()["unit"]
        return str(units.iloc[0]) if len(units) else ""

    @cached_property
    def descriptions(self) -> Mapping[str, GameMetric]:
        """What each metric means, as far as the scenario is installed."""
        return merge_metrics(self.pack.scenario.unit, self.pack.scenario.metrics) if self.pack else {}

    @property
    def playable(self) -> Pack | None:
        """The pack, where it is of the version of these results: only then episodes play again as they did."""
        return self.pack if self.pack and self.pack.manifest.version == self.version else None

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics of which some player has a mean, those that matter most first."""
        known = self.overall[self.overall["mean"].notna()]
        families = dict(zip(known["metric"], known["family"], strict=True))
        order = {name: at for at, name in enumerate(self.descriptions)}
        return sorted(families, key=lambda name: (_rank_family(families[name]), order.get(name, len(order)), name))

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """The episodes that were played to their end, of the snapshots that the boards show: one row each, with `player`, `is_baseline`."""
        if not self.rows.has("episodes"):
            none = pd.DataFrame(columns=[*_OF_EPISODE, *_NAME_COLUMNS])
            return none.astype({"reward": float, "is_baseline": bool})
        where = {**self.where, "status": PLAYED_EPISODE}
        frame: pd.DataFrame = self.rows.table("episodes", _OF_EPISODE, where, ("episode_id",)).to_pandas()
        players = self.overall[[*PLAYER_KEYS, *_NAME_COLUMNS]].drop_duplicates(PLAYER_KEYS)
        return frame.merge(players, on=PLAYER_KEYS)

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """Games (item_id, cluster) down, players across: the mean reward over draws, NaN where a player lacks a game."""
        return self.episodes.pivot_table(index=["item_id", "cluster"], columns="player", values="reward", aggfunc="mean")


def _rank_family(family: str) -> int:
    return FAMILY_ORDER.index(family) if family in FAMILY_ORDER else len(FAMILY_ORDER)


def load_scenario_results(rows: StoredRows, known: GameDocuments) -> list[ScenarioResults]:
    """All scenarios with episodes, results or strategies, by name."""
    connection, every = rows.connection, rows.frame("persona_results")
    every = every if len(every) else PERSONA_RESULTS.empty_table().to_pandas()
    own = select_shown_versions(every, known.manifests)
    labels = PlayerLabels(dict(zip(own["model_variant"], rename_variants(own)["model"], strict=True)), known.personas)
    covered, shared = set_game_coverage(own, np.nan), own.iloc[:0]
    if all(map(rows.has, GAME_RESULTS_READS)):
        covered = add_game_coverage(connection, own)
        shared = compute_shared_results(connection, _filter_unlike_games(covered))
    noted = add_unplayed_note if all(map(rows.has, UNPLAYED_READS)) else lambda _, found: clear_unplayed_note(found)
    results, shared = (_add_players(sort_players(noted(connection, one)), labels) for one in (covered, shared))
    met = results[(results["metric"] == EXPECTED_RETURN) & (results["opponent"] != ALL_OPPONENTS)]
    versions = _list_versions(rows, results)
    files = choose_file_names(name.replace("/", ".") for name in versions)
    return [
        ScenarioResults(
            name,
            f"games/scenarios/{files[name.replace('/', '.')]}.html",
            found[-1],
            rows,
            labels,
            _filter_scenario(results, name),
            _filter_scenario(met, name),
            find_pack(name, known.manifests),
            found[:-1],
            _filter_scenario(shared, name),
        )
        for name, found in sorted(versions.items())
    ]


def _filter_unlike_games(covered: pd.DataFrame) -> pd.DataFrame:
    """The rows of scenarios whose players have not all played the same games."""
    whole = covered.groupby(["league", "scenario"])[PLAYED_COVERAGE].transform("min") >= 1
    return covered[~whole & covered[PLAYED_COVERAGE].notna()]


def _list_versions(rows: StoredRows, results: pd.DataFrame) -> dict[str, list[int]]:
    """Of each scenario the versions that were played, the one that the pages show last."""
    keys, played = ("league", "scenario", "version"), dict[str, set[int]]()
    for table in filter(rows.has, _TABLES_OF_VERSIONS):
        for row in rows.rows(f"(SELECT DISTINCT {', '.join(keys)} FROM {table})", keys, {}):
            played.setdefault(f"{row['league']}/{row['scenario']}", set()).add(int(row["version"]))
    names = results["league"] + "/" + results["scenario"]
    shown = dict(zip(names, results["version"].astype(int), strict=True))
    found = {}
    for name in {*played, *shown}:
        own = shown.get(name) or max(played[name])
        found[name] = [*sorted(one for one in played.get(name, set()) if one < own), own]
    return found


def _filter_scenario(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame[frame["league"] + "/" + frame["scenario"] == name] if len(frame) else frame


def _add_players(frame: pd.DataFrame, labels: PlayerLabels) -> pd.DataFrame:
    not_yet = {name: np.nan for name in BESIDE_METRICS if name not in frame}  # of results of an earlier version of this project
    names = list(map(labels.model, frame["model_variant"], frame["model"]))
    return frame.assign(
        **not_yet,
        name=names,
        as_persona=[labels.persona(one) if one else "" for one in frame["persona"]],
        player=list(map(labels.as_persona, names, frame["persona"])),
        is_baseline=frame["model"].str.startswith(BASELINE_PREFIX),
        **{PERSONA_STATUS: list_persona_statuses(frame["persona"].tolist(), labels.personas)},
    )


def list_unplayed(shown: Sequence[ScenarioResults]) -> Iterator[dict[str, Any]]:
    """Episodes of these versions that were not played to their end: one row per scenario, player, state and reason."""
    versions = {one.name: one for one in shown}
    wanted = ("league", "scenario", "version", "persona", "model", "model_variant", "status", "reason", "n")
    rows = shown[0].rows if shown else None
    for row in rows.rows(_STATES, wanted, {}, wanted[:-1]) if rows and rows.has("episodes") else []:
        found = versions.get(f"{row['league']}/{row['scenario']}")
        if found and found.version == row["version"]:
            player = found.labels.player(row["persona"], row["model_variant"], row["model"])
            yield {"scenario": found.link, "player": player, "status": row["status"], "reason": row["reason"], "n": row["n"]}
