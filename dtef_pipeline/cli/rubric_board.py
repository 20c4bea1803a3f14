"""What `dtef rubric board` does; the words are in `dtef_pipeline/cli/rubric_group.py`, the views in `rubric/board_views.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.cli.blueprint_patterns import fitting
from dtef_pipeline.cli.mixed_served import say_mixed
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.rubric_labels import board as corrected_board
from dtef_pipeline.cli.stale_tables import say_stale
from dtef_pipeline.cli.view_table import print_rows
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.rubric.board import TEST_TAG, rubric_snapshot_order
from dtef_pipeline.rubric.board_views import (
    BOARD_VIEW_BY_NAME,
    BOARD_VIEWS,
    CHAMPIONS_VIEW,
    COMPARE_VIEW,
    CORRECTED_VIEW,
    RubricView,
)
from dtef_pipeline.rubric.report.verdicts import criteria_counted
from dtef_pipeline.rubric.runs_compared import MODELS_COMPARED, averaged_runs, compare_models, several_policies, unlike_runs
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from dtef_pipeline.rubric.validity import DISAGREED_FROM
from dtef_pipeline.tables import description
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse

_AVERAGED = ("overall", "tag", COMPARE_VIEW)
"""Views that average over blueprints."""
_RUNS_ALIKE = (
    "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, judges, judge_hash, policy FROM rubric_runs"
)
_COMPARED_READ = ("rubric_scores", "rubric_runs", "rubric_blueprints")


def show(by: str, blueprints: Sequence[str], output: str) -> None:
    if by == CORRECTED_VIEW:
        corrected_board(blueprints, output)
    else:
        _board(by, blueprints, output)


@reads_tables
def _board(warehouse: Warehouse, by: str, blueprints: Sequence[str], output: str) -> None:
    view = BOARD_VIEW_BY_NAME[by]
    frame = _rows(warehouse, view, blueprints)
    if not len(frame):
        raise WarehouseError(f"nothing to show by {by}: it needs {view.needs}")
    print_view(view, frame, output, _lines_of(warehouse, view, blueprints))
    if output == "table" and "rank" in view.columns:
        say_mixed(warehouse, "rubric_responses")


def _rows(warehouse: Warehouse, view: RubricView, blueprints: Sequence[str]) -> pd.DataFrame:
    if blueprints and not view.of_blueprints:
        names = [one.name for one in BOARD_VIEWS if one.of_blueprints]
        raise ConfigError(f"--blueprint with --by {view.name}: allowed with --by {', '.join(names[:-1])} or {names[-1]}")
    if view.name == COMPARE_VIEW:
        return _compared(warehouse, blueprints)
    require_rolled_up(warehouse, view.table)
    frame = pd.DataFrame(warehouse.rows(view.table).to_pandas())
    return _of_blueprints(frame, blueprints) if blueprints else frame


def require_table(warehouse: Warehouse, table: str, how: str) -> None:
    if not warehouse.tables_in(table) or table not in warehouse.tables():
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {how}")


def require_rolled_up(warehouse: Warehouse, table: str) -> None:
    """Raises WarehouseError where no roll-up has made it. Says so where scores are newer."""
    require_table(warehouse, table, "`dtef rubric run` makes it, and `dtef rollup --family rubric`")
    say_stale(warehouse, table, "rubric_scores", "dtef rollup --family rubric")


def _of_blueprints(frame: pd.DataFrame, patterns: Sequence[str]) -> pd.DataFrame:
    """Of the rows with a blueprint, or of those of the cut by blueprint, those whose blueprint fits."""
    rows, name = (frame, "blueprint") if "blueprint" in frame else (frame[frame["cut"] == "blueprint"], "value")
    return rows[rows[name].isin(fitting(list(rows[name].unique()), patterns))]


def _compared(warehouse: Warehouse, patterns: Sequence[str]) -> pd.DataFrame:
    """Over the blueprints that fit; without a pattern over all that are no tests, as on the board."""
    require_table(warehouse, "rubric_scores", "`dtef rubric run` makes it")

    def made(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level IN ('cell', 'model')").df()
        chosen = _chosen(connection, sorted(scores["blueprint"].astype(str).unique()), patterns)
        return compare_models(scores, rubric_snapshot_order(connection), chosen)

    with waiting("comparing models"):
        return warehouse.query(made, only=_COMPARED_READ)


def _chosen(connection: duckdb.DuckDBPyConnection, known: Sequence[str], patterns: Sequence[str]) -> Sequence[str]:
    """The blueprints that fit; without a pattern all that are no tests."""
    told = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    tests = {blueprint for blueprint, tags in told if TEST_TAG in (tags or ())}
    return fitting(known, patterns) if patterns else [one for one in known if one not in tests]


def print_view(
    view: RubricView, frame: pd.DataFrame, output: str, lines: Iterable[str] = (), told: Mapping[str, str] | None = None
) -> None:
    """The table, then notes on rows, lines on the whole, and what the columns mean; for other programs the rows alone.

    `told`: what columns mean that the view's table does not have.
    """
    print_rows(view, frame, output, lines, {**_meanings(view), **(told or {})})


def _meanings(view: RubricView) -> Mapping[str, str]:
    if view.name == COMPARE_VIEW:
        return MODELS_COMPARED
    schema = RUBRIC_TABLES[view.table].schema
    return {column.name: description(column) for column in schema or ()}


def _lines_of(warehouse: Warehouse, view: RubricView, blueprints: Sequence[str]) -> Iterator[str]:
    """What is to be known of a whole view."""
    if view.name == "agreement":
        n = len(warehouse.rows("rubric_disagreed", columns=["blueprint"]))
        if n:
            how = "`dtef sql 'FROM rubric_disagreed'` lists them, the worst first"
            yield f"{criteria_counted(n)} whose judges differ by more than {DISAGREED_FROM:g} (standard deviation): {how}"
    elif view.name in _AVERAGED:
        yield from unlike_runs(_runs_averaged(warehouse, view, blueprints))
    elif "rank" in view.columns and view.name != CHAMPIONS_VIEW:
        yield from several_policies(_runs_averaged(warehouse, view, blueprints)["policy"])


def _runs_averaged(warehouse: Warehouse, view: RubricView, patterns: Sequence[str]) -> pd.DataFrame:
    """The latest run of each blueprint that the rows are of."""

    def made(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
        runs = connection.sql(_RUNS_ALIKE).to_arrow_table().to_pandas()
        runs = averaged_runs(scores, runs, rubric_snapshot_order(connection))
        chosen = _chosen(connection, runs["blueprint"].tolist(), patterns) if view.name in _AVERAGED else runs["blueprint"]
        return runs[runs["blueprint"].isin(list(chosen))]

    return warehouse.query(made, only=_COMPARED_READ)
