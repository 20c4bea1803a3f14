"""What the pages are made of: of each scenario the results of one version, and the episodes of the snapshots that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.games.contract import GameMetric
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.metrics import BESIDE_METRICS, metrics_of
from dtef_pipeline.games.packs import Pack, pack_if_installed
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, GAME_RESULTS_READS, matchups, player_names
from dtef_pipeline.games.personas import BASELINE_PREFIX, PERSONA_STATUS, Persona, persona_statuses
from dtef_pipeline.games.same_games import (
    PLAYED_COVERAGE,
    UNPLAYED_READS,
    all_played,
    ranked_players,
    shared_results,
    versions_shown,
    whole_coverage,
    with_coverage,
    with_unplayed,
)
from dtef_pipeline.report.stored_rows import StoredRows

MADE_BY_LEAGUE = "`dtef games run --player NAME` has players play, and `dtef games board --refresh` makes boards"
FAMILY_ORDER = ("expected value", "composite", "efficacy", "efficiency", "risk", "social", "safety", "form")
PLAYER_KEYS = ["persona", "model", "model_variant", "snapshot"]
_TABLES_OF_VERSIONS = ("episodes", "strategy_values")
_STATES = (
    "(SELECT league, scenario, version, persona, model, model_variant, status, reason, count(*) AS n FROM episodes "
    "WHERE status <> 'played' GROUP BY ALL)"
)


@dataclass(frozen=True)
class ScenarioResults:
    """One version of a scenario: the one in play, or else the latest that was played."""

    name: str
    """League and scenario."""
    version: int
    results: pd.DataFrame
    """Rows of `persona_results`, best first, with `player`, `persona_status` and `is_baseline`; none: nothing is rolled up."""
    matchups: pd.DataFrame
    pack: Pack | None
    """None: the scenario is not installed any more."""
    older: list[int] = field(default_factory=list)
    """Earlier versions that were played, too."""
    shared: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The same as `results`, of the games alone that all players have; none: they have the same games, or none in common."""

    @cached_property
    def overall(self) -> pd.DataFrame:
        """The results over all opponents."""
        return self.results[self.results["opponent"] == ALL_OPPONENTS] if len(self.results) else self.results

    @property
    def engine(self) -> str:
        """The scenario whose tables and commands these are: its own name, or the one that its manifest names as `adapter`."""
        return self.pack.manifest.adapter_name if self.pack else self.name

    @cached_property
    def told_metrics(self) -> Mapping[str, GameMetric]:
        """What each metric means, as far as the scenario is installed."""
        return metrics_of(self.pack.scenario.unit, self.pack.scenario.metrics) if self.pack else {}

    @property
    def playable(self) -> Pack | None:
        """The pack, where it is of the version of these results: only then episodes play again as they did."""
        return self.pack if self.pack and self.pack.manifest.version == self.version else None

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics of which some player has a mean, those that matter most first."""
        overall = self.overall
        if not len(overall):
            return []
        known = overall[overall["mean"].notna()]
        families = dict(zip(known["metric"], known["family"], strict=True))
        order = {name: at for at, name in enumerate(self.told_metrics)}
        return sorted(families, key=lambda name: (_family_place(families[name]), order.get(name, len(order)), name))


def _family_place(family: str) -> int:
    return FAMILY_ORDER.index(family) if family in FAMILY_ORDER else len(FAMILY_ORDER)


def played_scenarios(
    rows: StoredRows,
    manifests: Mapping[str, ScenarioManifest],
    connection: duckdb.DuckDBPyConnection,
    personas: Mapping[str, Persona] = MappingProxyType({}),
) -> list[ScenarioResults]:
    """All scenarios with episodes or results, by name. `connection`: that of `rows`; `personas`: those that are known, by id and version."""
    every = rows.frame("persona_results")
    results, shared, met = every, every.iloc[:0], matchups(every) if len(every) else every
    if len(every):
        own = versions_shown(every, manifests)
        covered = whole_coverage(own, np.nan)
        if all(map(rows.has, GAME_RESULTS_READS)):
            covered = with_coverage(connection, own)
            shared = shared_results(connection, _of_unlike_games(covered))
        told = with_unplayed if all(map(rows.has, UNPLAYED_READS)) else lambda _, found: all_played(found)
        results, shared = (_with_players(ranked_players(told(connection, one)), personas) for one in (covered, shared))
    versions = _versions(rows, results)
    return [
        ScenarioResults(
            name,
            found[-1],
            _of(results, name),
            _of_version(met, name, found[-1]),
            pack_if_installed(name, manifests),
            found[:-1],
            _of(shared, name),
        )
        for name, found in sorted(versions.items())
    ]


def _of_unlike_games(covered: pd.DataFrame) -> pd.DataFrame:
    """The rows of scenarios whose players have not all played the same games."""
    whole = covered.groupby(["league", "scenario"])[PLAYED_COVERAGE].transform("min") >= 1
    return covered[~whole & covered[PLAYED_COVERAGE].notna()]


def _versions(rows: StoredRows, results: pd.DataFrame) -> dict[str, list[int]]:
    """Of each scenario the versions that were played, the one that the pages show last."""
    wanted = ("league", "scenario", "version")
    found: dict[str, set[int]] = {}
    for table in filter(rows.has, _TABLES_OF_VERSIONS):
        for row in rows.rows(f"(SELECT DISTINCT league, scenario, version FROM {table})", wanted, {}):
            found.setdefault(f"{row['league']}/{row['scenario']}", set()).add(int(row["version"]))
    for name in set(results["league"] + "/" + results["scenario"]) if len(results) else ():
        own = int(_of(results, name)["version"].iloc[0])
        found[name] = {one for one in found.get(name, set()) if one < own} | {own}
    return {name: sorted(versions) for name, versions in found.items()}


def _of(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame[frame["league"] + "/" + frame["scenario"] == name] if len(frame) else frame


def _of_version(frame: pd.DataFrame, name: str, version: int) -> pd.DataFrame:
    own = _of(frame, name)
    return own[own["version"] == version] if len(own) else own


def _with_players(frame: pd.DataFrame, personas: Mapping[str, Persona]) -> pd.DataFrame:
    not_yet = {name: np.nan for name in BESIDE_METRICS if name not in frame}  # of results of an earlier version of this project
    return frame.assign(
        **not_yet,
        player=player_names(frame["persona"].tolist(), frame["model"].tolist()),
        is_baseline=frame["model"].str.startswith(BASELINE_PREFIX),
        **{PERSONA_STATUS: persona_statuses(frame["persona"].tolist(), personas)},
    )


def not_played(rows: StoredRows, shown: list[ScenarioResults]) -> Iterator[dict[str, object]]:
    """Episodes of these versions that were not played to their end: one row per scenario, player, state and reason."""
    versions = {one.name: one.version for one in shown}
    wanted = ("league", "scenario", "version", "persona", "model", "model_variant", "status", "reason", "n")
    found = rows.rows(_STATES, wanted, {}, wanted[:-1]) if rows.has("episodes") else []
    for row in found:
        name = f"{row['league']}/{row['scenario']}"
        if versions.get(name) == row["version"]:
            (player,) = player_names([row["persona"]], [row["model"]])
            yield {"scenario": name, "player": player, "status": row["status"], "reason": row["reason"], "n": row["n"]}
