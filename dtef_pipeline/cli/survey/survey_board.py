"""`dtef board`: the boards of surveys, computed from the scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.boards import BY_METRIC, NO_RANK
from dtef_pipeline.boards.cells import has_table, load_cells
from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.boards.pairs import COMPARED_FAMILIES
from dtef_pipeline.cli.families import CommandFamily, filter_by_model, require_table
from dtef_pipeline.cli.read import list_scored_rounds
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.cli.warehouse_access import NothingToShowError, query_rounds, reads_tables, warn_mixed
from dtef_pipeline.report.terminal import add_ranks, format_column_intervals, rename_variants
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, compute_board
from dtef_pipeline.survey.boards.schemas import ENDS, FIRST_OUT, SHOWN_INTERVALS, list_board_columns, list_subject_columns
from dtef_pipeline.survey.boards.segment_gaps import sort_by_significance
from dtef_pipeline.survey.boards.survey_boards import BOARDS, BY_NAME, GROUPED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.observations import describe_n
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse

MAX_ROWS = 60
"""Default number of rows of boards of questions or gaps as tables."""
_MAX_SEGMENTS, _MAX_NOTES = 3, 5
_OF_CEILINGS = {"ceiling", "skill", "deviation", "segment_sd_expected"}
"""Columns of boards that depend on ceilings."""
_SUBSTITUTES = {"parsed_score": "score", "adjusted_score": "score"}
"""Columns that equal another one if every response is readable and all models have the same questions."""
_ROW_NAMES = ("round", "attribute", "segment", "question_id", "model", "other_model")
"""Columns that identify a row in front of a note, if its board has them."""
_FILTERS = {"round": "rounds", "context_level": "context levels", "condition": "conditions", "snapshot": "snapshots"}
"""The columns that options choose values of, with their nouns."""


@reads_tables
def show(warehouse: Warehouse, /, by: str, output: str, models: Sequence[str], top: int | None, **options: Any) -> None:
    settings = SurveyBoardOptions(**{name: value for name, value in options.items() if value is not None})
    require_table(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    list_scored_rounds(warehouse, settings.rounds)
    print_survey_board(warehouse, by, settings, output, models, top)


def print_survey_board(
    warehouse: Warehouse,
    by: str,
    settings: SurveyBoardOptions,
    output: str = "table",
    models: Sequence[str] = (),
    top: int | None = None,
) -> None:
    """Print a board. `models`: patterns; `top`: number of rows, 0 for all. Raises NothingToShowError if it has no rows."""
    tables = [*BOARD_SOURCES, "predictions"] if by == "conditions" else BOARD_SOURCES
    with waiting("computing the board"):
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
        print_rows(BY_NAME[by], rows, output, ())
        return
    table = prepare_rows(by, rows)
    lines = warehouse.query(
        lambda connection: [*describe_rows(connection, rows, len(frame) - len(rows), settings)],
        only=[*BOARD_SOURCES, "survey_findings"],
        first=settings.rounds,
    )
    print_rows(build_layout(by, table), table, output, lines, f"survey/{by}", ENDS)
    warn_mixed(warehouse, "predictions", settings.rounds, settings.snapshot)


def _load_board(connection: duckdb.DuckDBPyConnection, by: str, options: SurveyBoardOptions) -> pd.DataFrame:
    """Return the rows of a board, with the texts of its questions, and with the reasons why models have no score."""
    frame = compute_board(connection, by, options)
    if not len(frame):
        raise NothingToShowError(_explain_empty(connection, by, options))
    if "question_id" in frame:
        texts = connection.execute(
            "SELECT round, question_id, any_value(question_text) AS question FROM survey_responses GROUP BY ALL"
        ).df()
        frame = frame.merge(texts, on=["round", "question_id"], how="left")
    return add_reasons(connection, frame, options) if by == "overall" else frame


def add_reasons(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, options: SurveyBoardOptions) -> pd.DataFrame:
    """Return an overall board whose notes give the most frequent reason why a model's responses have no score."""
    reasons = connection.execute(
        "SELECT model_variant, context_level, condition, mode(reason) AS why FROM scores "
        "WHERE reason <> '' AND (len($1) = 0 OR list_contains($1, round)) AND ($2 IS NULL OR snapshot = $2) GROUP BY ALL",
        [list(options.rounds), options.snapshot],
    ).df()
    keys = ["model_variant", "context_level", "condition"]
    why = frame[keys].astype(str).merge(reasons.astype(str), on=keys, how="left")["why"]
    why = why.fillna("nothing that counts here was asked").set_axis(frame.index)
    return frame.assign(note=frame["note"].mask(frame["n_pairs"] == 0, "no score: " + why))


def prepare_rows(by: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a board for people: each model under one name, without notes and columns that add nothing."""
    table = rename_variants(add_ranks(frame, METRICS) if by == BY_METRIC else frame)
    if by in GROUPED and "note" in table:
        kept = ("no interval", "no score", NO_RANK) if by == "overall" else ("no interval",)
        sentences = table["note"].mask(table["n_pairs"].eq(0) & (by != "overall")).fillna("").str.split("; ")
        table["note"] = ["; ".join(text for text in texts if text.startswith(kept)) for texts in sentences]
    if "question" in table:  # shown once for neighbouring rows, as it takes several lines
        table["question"] = table["question"].where(table["question_id"] != table["question_id"].shift(), "")
    if {"n_questions", "n_batteries"} <= {*frame}:
        counts = zip(frame["n_questions"], frame["n_batteries"], strict=True)
        table["questions"] = [f"{questions:,} ({batteries:,})" for questions, batteries in counts]
    if "skill_low" in frame:
        table["skill_interval"] = format_column_intervals(frame, "skill", ENDS["skill"])
    alike = [name for name, other in _SUBSTITUTES.items() if name in frame and _is_equal(frame[name], frame[other])]
    if "parsed_verdict" in frame:
        is_other = (
            frame["parsed_note"].fillna("") != "" if "parsed_note" in frame else frame["parsed_verdict"] != frame["verdict"]
        )
        alike += [] if is_other.any() else ["parsed_verdict"]
    return table.drop(columns=alike)


def _is_equal(values: pd.Series[Any], others: pd.Series[Any]) -> bool:
    return not (values - others).abs().gt(5e-5).any()


def build_layout(by: str, table: pd.DataFrame) -> Board:
    """Return a board's layout, with the column `condition` if any row has an unusual one."""
    columns = [name for name in list_board_columns(by) if name not in ("note", "consistency_note")]
    if not set(table["condition"]) <= {BlueprintOptions().condition}:
        columns.insert(columns.index("context_level" if "context_level" in columns else "model") + 1, "condition")
    ends = next((pair for pair in SHOWN_INTERVALS if pair[0] in table), ("", ""))
    return replace(
        BY_NAME[by],
        columns=tuple(columns),
        always_shown=list_subject_columns(by),
        hidden_first=FIRST_OUT,
        estimate=next((name for name, pair in ENDS.items() if pair == ends and name in table), ""),
        ends=ends,
        notes="consistency_note" if by == "consistency" else "note",
        name_columns=tuple(name for name in _ROW_NAMES if name in columns),
    )


def describe_rows(
    connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, n_hidden: int, options: SurveyBoardOptions
) -> Iterator[str]:
    """Yield lines on a board: hidden rows, samples, segments left out, readable responses, and the n of its rounds."""
    if n_hidden:
        yield f"{format_count(n_hidden, 'more row')}: --top 0 shows all, --csv writes them for other programs"
    yield from describe_samples(connection, options)
    yield from describe_non_answers(connection, options)
    yield from describe_readable_only(rows)
    if _OF_CEILINGS & {*rows}:
        yield from describe_n(connection, options.rounds)


def describe_samples(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> Iterator[str]:
    """Yield a line for each round of which language models got a sample: its pairs, segments and questions."""
    if not has_table(connection, "survey_responses"):
        return
    samples = connection.execute(
        f"""SELECT round, pairs, all_pairs, segments, all_segments, questions, all_questions FROM (
                SELECT round, count(DISTINCT (segment, question_id)) AS pairs,
                    count(DISTINCT segment) AS segments, count(DISTINCT question_id) AS questions
                FROM scores WHERE NOT {COMPUTED_SQL} AND (len($1) = 0 OR list_contains($1, round)) AND ($2 IS NULL OR snapshot = $2)
                GROUP BY round
            ) JOIN (
                SELECT round, count(*) AS all_pairs,
                    count(DISTINCT segment) AS all_segments, count(DISTINCT question_id) AS all_questions
                FROM survey_responses GROUP BY round
            ) USING (round) WHERE pairs < all_pairs ORDER BY round""",
        [list(options.rounds), options.snapshot],
    ).fetchall()
    for name, pairs, all_pairs, segments, all_segments, questions, all_questions in samples:
        part = f"{segments:,} of {format_count(all_segments, 'segment')}, {questions:,} of {format_count(all_questions, 'question')}"
        yield f"{name}: language models were asked {pairs:,} of {format_count(all_pairs, 'pair')} ({part})"


def describe_non_answers(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> Iterator[str]:
    """Yield how many segments of non-respondents a board leaves out, if any."""
    if options.respondents_sql is None:
        return
    rows = connection.execute(
        f"SELECT DISTINCT round || '/' || segment FROM scores WHERE NOT ({options.respondents_sql}) "
        "AND (len($1) = 0 OR list_contains($1, round)) ORDER BY 1",
        [list(options.rounds)],
    ).fetchall()
    if rows:
        many, named = format_count(len(rows), "segment"), list_first_names([name for (name,) in rows], _MAX_SEGMENTS)
        yield f"left out: {many} of people who gave no answer ({named}); `dtef board --non-answers` keeps them"


def describe_readable_only(frame: pd.DataFrame) -> Iterator[str]:
    """Yield lines on the first rows whose readable responses give another result than the published policy."""
    if "parsed_note" not in frame:
        return
    rows = rename_variants(frame[frame["parsed_note"].fillna("") != ""])
    for row in rows.head(_MAX_NOTES).to_dict("records"):
        pair = f"{row['model']} against {row['other_model']}" if "other_model" in row else row["model"]
        yield f"by only the readable responses: {pair}: {row['parsed_note']}"
    if len(rows) > _MAX_NOTES:
        yield f"{format_count(len(rows) - _MAX_NOTES, 'more row')}: --csv has them all, as parsed_note"


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
        for name in _FILTERS
    }
    choices["snapshot"] = among(snapshot_order(connection), choices["snapshot"])
    unknown = {name for name, values in filters.items() if not {*values} <= {*choices[name]}}
    lines = [f"{_FILTERS[name]} {', '.join(values)}" for name, values in choices.items() if name in unknown or not unknown]
    return f"nothing is scored for {filter_text or 'these options'}; scored so far: {'; '.join(lines)}"


SURVEY_COMMANDS = CommandFamily(
    "survey",
    SUBJECT,
    BOARDS,
    show=show,
    wait_hint=" `dtef board --snapshot NAME` shows the scores of each now.",
    no_series_reason="only baselines are scored, and they do not drift; segments of people who gave no answer are ignored",
)
