"""`dtef board`: the boards of surveys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click
import duckdb
import pandas as pd

from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.boards.pairs import COMPARED_FAMILIES
from dtef_pipeline.cli.families import CommandFamily, filter_by_model, require_table
from dtef_pipeline.cli.read import list_scored_rounds
from dtef_pipeline.cli.survey.boards import (
    describe_board_columns,
    describe_non_answers,
    describe_samples,
    describe_unranked,
    find_reasons_without_score,
    format_design_effect_lines,
    render_board,
)
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import NothingToShowError, query_rounds, reads_tables, warn_mixed
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, compute_board
from dtef_pipeline.survey.boards.segment_gaps import sort_by_significance
from dtef_pipeline.survey.boards.survey_boards import BOARDS, BY_NAME
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.text.number_words import format_count
from resources.warehouse import Warehouse

MAX_ROWS = 60
"""Default number of rows of boards of questions or gaps as tables."""


@reads_tables
def show(warehouse: Warehouse, /, by: str, output: str, models: Sequence[str], top: int | None, **options: Any) -> None:
    settings = SurveyBoardOptions(**{name: value for name, value in options.items() if value is not None})
    require_table(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    list_scored_rounds(warehouse, settings.rounds)
    tables = [*BOARD_SOURCES, "predictions"] if by == "conditions" else BOARD_SOURCES
    frame = query_rounds(warehouse, lambda connection: _load_board(connection, by, settings), tables, settings.rounds)
    frame = filter_by_model(frame, models, by)
    if "deviation" in frame:
        frame = sort_by_significance(frame)
    if "adjusted_over" in frame:
        frame = frame.sort_values("adjusted_over", key=lambda among: among.map(COMPARED_FAMILIES.index), kind="stable")
    if output == "table" and top is None and {"question_id", "deviation"} & {*frame}:
        top = MAX_ROWS
    rows = frame.head(top or len(frame))
    if output != "table":
        click.echo(render(rows, output))
        return
    for line in warehouse.query(
        lambda connection: [*describe_samples(connection, settings)], only=BOARD_SOURCES, first=settings.rounds
    ):
        say(line)
    click.echo(render_board(by, rows))
    if n_more := len(frame) - len(rows):
        say(f"{format_count(n_more, 'more row')}: --top 0 shows all, --csv writes them for other programs")
    if by == "overall" and rows["rank"].isna().any():
        why = warehouse.query(
            lambda connection: find_reasons_without_score(connection, settings), only=["scores"], first=settings.rounds
        )
        click.echo(describe_unranked(rows, why))
    warn_mixed(warehouse, "predictions", settings.rounds, settings.snapshot)
    if silent := warehouse.query(
        lambda connection: describe_non_answers(connection, settings), only=["scores"], first=settings.rounds
    ):
        click.echo(silent)
    click.echo(
        "\n".join(
            filter(None, [format_design_effect_lines(warehouse, rows, settings.rounds), describe_board_columns(by, rows)])
        )
    )


def _load_board(connection: duckdb.DuckDBPyConnection, by: str, options: SurveyBoardOptions) -> pd.DataFrame:
    """The rows of a board, with the words of its questions."""
    frame = compute_board(connection, by, options)
    if not len(frame):
        raise NothingToShowError(_explain_empty(connection, by, options))
    if "question_id" in frame:
        texts = connection.execute(
            "SELECT round, question_id, any_value(question_text) AS question FROM survey_responses GROUP BY ALL"
        ).df()
        return frame.merge(texts, on=["round", "question_id"], how="left")
    return frame


def _explain_empty(connection: duckdb.DuckDBPyConnection, view_name: str, options: SurveyBoardOptions) -> str:
    """Describe what a board without rows lacks, and which options may have excluded it."""
    filters = {
        "round": options.rounds,
        "context_level": options.context_levels,
        "condition": [options.condition] if options.condition else [],
        "snapshot": [options.snapshot] if options.snapshot else [],
    }
    filter_text = ", ".join(f"--{name.partition('_')[0]} {', '.join(values)}" for name, values in filters.items() if values)
    needs = BY_NAME[view_name].needs
    if not needs or not len(load_cells(connection, options)):
        return _list_available(connection, filter_text, filters)
    if view_name == "context" and len(options.context_levels) == 1:
        (only,) = options.context_levels
        return f"--by context compares context levels, and --context {only} leaves only one: leave --context out"
    note = f" (only {filter_text} was searched; other scores may have it)" if filter_text else ""
    return f"nothing to show by {view_name}: it needs {needs}{note}"


def _list_available(connection: duckdb.DuckDBPyConnection, filter_text: str, filters: Mapping[str, Collection[str]]) -> str:
    """Describe what is scored: the values of the filters with an unknown value, or of all if each value is known. `filters`: by column."""
    choices = {
        name: [value for (value,) in connection.execute(f"SELECT DISTINCT {name} FROM scores ORDER BY 1").fetchall()]
        for name in ("round", "context_level", "condition", "snapshot")
    }
    choices["snapshot"] = among(snapshot_order(connection), choices["snapshot"])
    unknown = {name for name, values in filters.items() if not {*values} <= {*choices[name]}}
    lines = [f"{_NOUNS[name]} {', '.join(values)}" for name, values in choices.items() if name in unknown or not unknown]
    return f"nothing is scored for {filter_text or 'these options'}; scored so far: {'; '.join(lines)}"


_NOUNS = {"round": "rounds", "context_level": "context levels", "condition": "conditions", "snapshot": "snapshots"}


SURVEY_COMMANDS = CommandFamily(
    "survey",
    SUBJECT,
    BOARDS,
    show=show,
    wait_hint=" `dtef board --snapshot NAME` shows the scores of each now.",
    no_series_reason="only baselines are scored, and they do not drift; segments of people who gave no answer are ignored",
)
