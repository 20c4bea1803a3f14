"""`dtef rubric board`, and what rubrics bring to the commands that take `--family`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cuts import of_cut
from dtef_pipeline.boards.family_views import BoardView
from dtef_pipeline.cli.families import CommandFamily, fitting, meanings_of, of_models, require_rolled_up, require_table
from dtef_pipeline.cli.opened_warehouse import NothingToShowError, reads_tables, say_mixed
from dtef_pipeline.cli.options import refuse_others
from dtef_pipeline.cli.rubric import rubric_labels
from dtef_pipeline.cli.terminal import filled_columns, print_rows, print_table
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.terminal import intervals_of, render
from dtef_pipeline.rubric.board import TEST_TAG, rubric_snapshot_order
from dtef_pipeline.rubric.board_views import (
    BOARD_VIEW_BY_NAME,
    BOARD_VIEWS,
    CHAMPIONS_VIEW,
    COMPARE_VIEW,
    CORRECTED_VIEW,
    LABELS_VIEW,
)
from dtef_pipeline.rubric.results.judged_points import criteria_counted
from dtef_pipeline.rubric.runs_compared import averaged_runs, compare_over_blueprints, several_policies, unlike_runs
from dtef_pipeline.rubric.tables import RUBRIC_CUTS
from dtef_pipeline.rubric.validity import DISAGREED_FROM
from dtef_pipeline.rubric.watched_drift import WATCHED
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse

_AVERAGED = ("overall", "tag", COMPARE_VIEW)
"""Views that average over blueprints."""
_RUNS_ALIKE = (
    "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, judges, judge_hash, policy FROM rubric_runs"
)
_CORRECTED_SHOWN = (
    *("blueprint", "model", "judged", "corrected", "interval", "interval_here", "labels_needed", "prompts_needed"),
    *("n_prompts_labelled", "n_prompts", "power", "reason"),
)
_COMPARED_READ = ("rubric_scores", "rubric_runs", "rubric_blueprints")


def show(by: str, models: Sequence[str], blueprints: Sequence[str], output: str) -> None:
    if by == CORRECTED_VIEW:
        _show_corrected(models, blueprints, output)
    elif by == LABELS_VIEW:
        refuse_others(("by",), f"--by {by}", apart=("refresh",))
        rubric_labels.show(output)
    else:
        _show_view(by, models, blueprints, output)


@reads_tables
def _show_view(warehouse: Warehouse, by: str, models: Sequence[str], blueprints: Sequence[str], output: str) -> None:
    view = BOARD_VIEW_BY_NAME[by]
    frame = of_models(_rows(warehouse, view, blueprints), models, by)
    if not len(frame):
        raise NothingToShowError(f"nothing to show by {by}: it needs {view.needs}")
    print_rows(view, frame, output, _lines_of(warehouse, view, blueprints), meanings_of(view.table))
    if output == "table" and "rank" in view.columns:
        say_mixed(warehouse, "rubric_responses")


def _rows(warehouse: Warehouse, view: BoardView, blueprints: Sequence[str]) -> pd.DataFrame:
    if blueprints and not view.of_partitions:
        names = [one.name for one in BOARD_VIEWS if one.of_partitions]
        raise ConfigError(f"--blueprint with --by {view.name}: allowed with --by {', '.join(names[:-1])} or {names[-1]}")
    if view.name == COMPARE_VIEW:
        return _compared(warehouse, blueprints)
    require_rolled_up(warehouse, "rubric", view.table, "rubric_scores")
    frame = pd.DataFrame(
        warehouse.rows(view.table).to_pandas(types_mapper={pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}.get)
    )
    if view.table == "rubric_board":
        frame = of_cut(frame, view.name, RUBRIC_CUTS)
    return _of_blueprints(frame, blueprints) if blueprints else frame


def _of_blueprints(frame: pd.DataFrame, patterns: Sequence[str]) -> pd.DataFrame:
    """Of the rows with a blueprint, or of those of the cut by blueprint, those whose blueprint fits."""
    rows, name = (frame, "blueprint") if "blueprint" in frame else (frame[frame["cut"] == "blueprint"], "value")
    return rows[rows[name].isin(fitting(list(rows[name].unique()), patterns, "--blueprint"))]


def _compared(warehouse: Warehouse, patterns: Sequence[str]) -> pd.DataFrame:
    """Over the blueprints that fit; without a pattern over all that are no tests, as on the board."""
    require_table(warehouse, "rubric_scores", "`dtef rubric run` makes it")

    def made(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level IN ('cell', 'model')").df()
        chosen = _chosen(connection, sorted(scores["blueprint"].astype(str).unique()), patterns)
        return compare_over_blueprints(scores, rubric_snapshot_order(connection), chosen)

    with waiting("comparing models"):
        return warehouse.query(made, only=_COMPARED_READ)


def _chosen(connection: duckdb.DuckDBPyConnection, known: Sequence[str], patterns: Sequence[str]) -> Sequence[str]:
    """The blueprints that fit; without a pattern all that are no tests."""
    told = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    tests = {blueprint for blueprint, tags in told if TEST_TAG in (tags or ())}
    return fitting(known, patterns, "--blueprint") if patterns else [one for one in known if one not in tests]


def _lines_of(warehouse: Warehouse, view: BoardView, blueprints: Sequence[str]) -> Iterator[str]:
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


def _runs_averaged(warehouse: Warehouse, view: BoardView, patterns: Sequence[str]) -> pd.DataFrame:
    """The latest run of each blueprint that the rows are of."""

    def made(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
        runs = connection.sql(_RUNS_ALIKE).to_arrow_table().to_pandas()
        runs = averaged_runs(scores, runs, rubric_snapshot_order(connection))
        chosen = _chosen(connection, runs["blueprint"].tolist(), patterns) if view.name in _AVERAGED else runs["blueprint"]
        return runs[runs["blueprint"].isin(list(chosen))]

    return warehouse.query(made, only=_COMPARED_READ)


@reads_tables
def _show_corrected(warehouse: Warehouse, models: Sequence[str], blueprints: Sequence[str], output: str) -> None:
    """The board as people's labels correct it."""
    frame = warehouse.rows("rubric_corrected").to_pandas()
    if frame.empty:
        raise NothingToShowError(
            f"no rubric_corrected in {warehouse.root} yet: after `dtef import labels SHEET` it is made by `dtef rubric board --refresh`"
        )
    frame = _of_blueprints(frame.dropna(subset="blueprint"), blueprints) if blueprints else frame[frame["blueprint"].isna()]
    frame = of_models(frame, models, CORRECTED_VIEW)
    if output != "table":
        click.echo(render(frame, output))
        return
    whole = {name: np.ceil(frame[name].astype("float64")).astype("Int64") for name in ("labels_needed", "prompts_needed")}
    ends = {"interval": ("corrected_low", "corrected_high"), "interval_here": ("here_low", "here_high")}
    shown = frame.assign(**{name: intervals_of(frame, "corrected", pair) for name, pair in ends.items()}, **whole)
    meanings = meanings_of("rubric_corrected") | {
        "interval": "95 % interval of corrected, other prompts being possible",
        "interval_here": "95 % interval of the score on these very prompts, had people judged all",
    }
    print_table(
        shown,
        meanings,
        columns=filled_columns(shown, _CORRECTED_SHOWN),
        kept=["model", "judged", "corrected", "interval"],
        first_out=["reason", "power", "n_prompts", "interval_here", "prompts_needed"],
    )


RUBRIC_COMMANDS = CommandFamily(
    name="rubric",
    part="blueprint",
    asks="dtef rubric run",
    subject=WATCHED,
)
