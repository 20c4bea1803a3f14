"""What the commands that take `--family` do with `--family games`: each is the function of the command's name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.cli import games_board, games_report, games_run
from dtef_pipeline.cli.family_drift import WatchedFamily, drift_of_models
from dtef_pipeline.cli.opened_warehouse import reads_tables, say_stale
from dtef_pipeline.cli.spent_by_role import COUNTED_USAGE, spent_by
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.cli.written_report import folder_given, refuse_snapshot
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.games.drift_tables import GAMES_DRIFT
from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.report.pages import GAMES_PAGES_FOLDER
from dtef_pipeline.games.report.terms import GAMES_NAMES
from dtef_pipeline.games.same_games import OWN_GAMES
from dtef_pipeline.games.tables import EPISODE_TURNS
from dtef_pipeline.games.watched_play import GAMES_DRIFT_READS, games_watched_drift, moved_baselines
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import and_more
from resources.warehouse import Warehouse

_GAMES_COSTS_BY = ("role", "scenario", "persona", "model")
_GAMES_SPENT = """
    SELECT 'candidate' AS role, league, scenario, persona, model, model_variant,
        count(DISTINCT request_key) FILTER (answered) AS answered, count(DISTINCT request_key) FILTER (answered) AS calls,
        coalesce(sum(prompt_tokens) FILTER (answered), 0)::BIGINT AS prompt_tokens,
        coalesce(sum(completion_tokens) FILTER (answered), 0)::BIGINT AS completion_tokens,
        sum(cost_usd) AS cost_usd, count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced,
        coalesce(sum(unknown_cost_attempts), 0)::BIGINT AS unknown_cost_attempts, sum(unknown_cost_usd_most) AS unknown_cost_usd_most
    FROM (SELECT *, call_status = 'answered' AS answered FROM ({calls}))
    WHERE answered OR unknown_cost_attempts > 0 OR cost_usd > 0 GROUP BY ALL ORDER BY ALL
"""
_GAMES_CALLS = ("episode_turns", "decision_answers")
_GAMES_CALL_COLUMNS = """
    league, scenario, persona, model, model_variant, request_key, call_status, prompt_tokens, completion_tokens, cost_usd,
    unknown_cost_attempts, unknown_cost_usd_most
"""


@dataclass(frozen=True, slots=True)
class GamesSpentView:
    """How the costs of games are shown."""

    columns: tuple[str, ...] = (*_GAMES_COSTS_BY, "model_variant", *COUNTED_USAGE, "cost")
    kept: tuple[str, ...] = ("scenario", "model", "model_variant", "cost")
    first_out: tuple[str, ...] = ("prompt_tokens", "completion_tokens", "calls")
    estimate: str = ""
    notes: str = "note"
    who: tuple[str, ...] = ("model",)


@dataclass(frozen=True, slots=True)
class GamesRuleView:
    """How the documented rule on each scenario is shown."""

    columns: tuple[str, ...] = (
        *("scenario", "version", "model", "persona", "opponent", "metric", "flagged", "gap", "lowest", "lowest_snapshot"),
        *("highest", "highest_snapshot", "n_snapshots", "n_items"),
    )
    kept: tuple[str, ...] = ("scenario", "model", "flagged", "gap")
    first_out: tuple[str, ...] = ("version", "n_items", "n_snapshots", "lowest", "highest")
    estimate: str = ""
    notes: str = "note"
    who: tuple[str, ...] = ("scenario", "model")


def leaderboard(by: str, output: str) -> None:
    """`by` has one choice: overall."""
    games_board.show((), (), (), EXPECTED_RETURN, False, OWN_GAMES, None, output)


@reads_tables
def costs(warehouse: Warehouse, by: Sequence[str], output: str) -> None:
    made = [table for table in _GAMES_CALLS if warehouse.tables([table])]
    nothing = WarehouseError("nothing to show: no model was asked; `dtef games run --player MODEL` asks")
    if not made:
        raise nothing
    frame: pd.DataFrame = warehouse.query(lambda connection: connection.sql(_spent(made)).df(), only=made)
    if not len(frame):
        raise nothing
    frame = spent_by(frame, by or _GAMES_COSTS_BY, output)
    meanings = {column.name: description(column) for column in EPISODE_TURNS}
    print_rows(GamesSpentView(), frame, output, (), {**meanings, "cost": COST_COLUMNS["cost"]})


def _spent(tables: Sequence[str]) -> str:
    """What the requests of these tables came to. An opening of an episode is the same request as its decision point: it counts once."""
    before, parts = list[str](), list[str]()
    for table in tables:
        again = " AND ".join(f"request_key NOT IN (SELECT request_key FROM {one})" for one in before)
        parts.append(f"SELECT {_GAMES_CALL_COLUMNS} FROM {table}{f' WHERE {again}' if again else ''}")
        before.append(table)
    return _GAMES_SPENT.format(calls=" UNION ALL ".join(parts))


def drift(by: str, since: Sequence[str], fail_on: str | None, output: str) -> None:
    if by == "scenario" and (given := "--fail-on" if fail_on else "--since" if since else ""):
        raise ConfigError(f"{given} with --by scenario: allowed with --by model; a scenario alone may have too few items")
    sys.exit(drift_of_models(_OF_GAMES, since, fail_on, output) if by == "model" else _drift_of_scenarios(output))


def _games_checks(warehouse: Warehouse, options: WatchOptions) -> pa.Table:
    """GAMES_MODEL_DRIFT."""
    return warehouse.query(lambda connection: games_watched_drift(connection, options), only=GAMES_DRIFT_READS).checks


def _of_baselines(warehouse: Warehouse, options: WatchOptions, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What baselines say of the games themselves."""
    moved = warehouse.query(lambda connection: list(moved_baselines(connection)), only=["episode_scores"])
    if not moved:
        return []
    return [
        f"baselines moved, so the games are not the same ones, and no shift is of a model alone: {and_more(moved, 3, '; ')}"
    ]


_OF_GAMES = WatchedFamily("games", GAMES_NAMES, _games_checks, _of_baselines, "dtef games run")


@reads_tables
def _drift_of_scenarios(warehouse: Warehouse, output: str) -> int:
    """What the documented rule says of each scenario, the largest gap first; the exit code."""
    if not warehouse.tables(["games_drift"]):
        raise WarehouseError(f"no games_drift in {warehouse.root} yet: `dtef rollup --family games` makes it")
    say_stale(warehouse, "games_drift", "episode_scores", "dtef rollup --family games")
    frame: pd.DataFrame = warehouse.rows("games_drift").to_pandas()
    if not len(frame):
        raise WarehouseError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    frame = frame.sort_values(
        ["gap", "league", "scenario", "model"], ascending=[False, True, True, True], na_position="last", kind="stable"
    )
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    print_rows(GamesRuleView(), frame, output, (), {column.name: description(column) for column in GAMES_DRIFT})
    return 0


def report(out: Path, snapshot: str | None) -> None:
    refuse_snapshot(snapshot)
    games_report.report(folder_given(out, GAMES_PAGES_FOLDER))


def rollup() -> None:
    sys.exit(games_run.rollup())
