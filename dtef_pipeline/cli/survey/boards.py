"""The boards of `dtef board` as tables for people: their scope, why rows lack a rank or an interval, and the meaning of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.boards import BY_METRIC, NO_RANK
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.cli.terminal import COLUMNS_LINE, compute_terminal_fit
from dtef_pipeline.report.terminal import (
    Fit,
    add_ranks,
    choose_shown_columns,
    format_column_intervals,
    intervals,
    rename_variants,
    render,
    wrap_line,
)
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.schemas import (
    ENDS,
    FIRST_OUT,
    OWN_INTERVALS,
    SHOWN_INTERVALS,
    list_board_columns,
    list_subject_columns,
)
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.observations import describe_n
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.warehouse import Warehouse


def describe_board_scope(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions, level: str) -> str:
    """Describe the scope of a context level's board: rounds, segments, questions, level, snapshots."""
    counted_responses = f"snapshot {options.snapshot}" if options.snapshot else "the latest response to each prompt"
    part = f"{_describe_segments(connection, options)}; {_describe_questions(connection, options)}"
    return f"all models on {', '.join(options.rounds)}: {part}; context {level}; {counted_responses}"


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


def _describe_segments(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """Describe the segments of a board, and how many a sample draws for each question. A round may have fewer."""
    named, sample = ", ".join(options.segments), options.sample_segments
    n_segments = _count_places_drawn(connection, "segment_order", options)
    if sample is None or n_segments is None or n_segments <= sample:
        return named or "all segments"
    return "; ".join(filter(None, [named, f"{sample:,} of {format_count(n_segments, 'segment')} drawn for each question"]))


def _count_places_drawn(connection: duckdb.DuckDBPyConnection, column: str, options: SurveyBoardOptions) -> int | None:
    """Return the most questions of a round, or segments of a question, that can be drawn, or None if the rounds are unknown."""
    ((count,),) = connection.execute(
        f"SELECT max({column}) + 1 FROM survey_responses WHERE list_contains($1, round)", [list(options.rounds)]
    ).fetchall()
    return None if count is None else int(count)


def _describe_questions(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """Describe a board's questions. A round may have fewer than requested."""
    sample = options.questions
    if sample is None:
        return "all questions"
    n_questions = _count_places_drawn(connection, "draw_order", options)
    if n_questions is not None and n_questions <= sample:
        return "all questions" if len(options.rounds) > 1 else f"all {format_count(n_questions, 'question')}"
    if n_questions is None or len(options.rounds) > 1:
        return f"{format_count(sample, 'question')} of each round"
    return f"{sample:,} of {format_count(n_questions, 'question')}"


_OF_CEILINGS = {"ceiling", "skill", "deviation", "segment_sd_expected"}
"""Columns of boards that depend on ceilings."""


def format_design_effect_lines(warehouse: Warehouse, frame: pd.DataFrame, rounds: Sequence[str]) -> str:
    """Return lines on the design effects and unknown n of `rounds` (empty: all); empty if there are none, or none affects the board."""
    if not _OF_CEILINGS & {*frame.columns}:
        return ""
    lines = warehouse.query(lambda connection: describe_n(connection, rounds), only=["survey_findings"], first=rounds)
    return "\n".join(wrap_line(line, compute_terminal_fit().width) for line in lines)


_MAX_PLACES = 3


def find_interval_reason(texts: Iterable[str]) -> str:
    """Return the reason that all intervals give in place of numbers; empty if they differ."""
    reasons = {words for words in texts if words}
    return reasons.pop() if len(reasons) == 1 and next(iter(reasons)).endswith("needed") else ""


def describe_non_answers(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """Return how many segments of non-respondents a board leaves out; empty if none."""
    if options.respondents_sql is None:
        return ""
    left_out = [
        f"{round_id}/{segment}"
        for round_id, segment in connection.execute(
            f"SELECT DISTINCT round, segment FROM scores WHERE NOT ({options.respondents_sql}) "
            "AND (len($1) = 0 OR list_contains($1, round)) ORDER BY ALL",
            [list(options.rounds)],
        ).fetchall()
    ]
    if not left_out:
        return ""
    many, named = format_count(len(left_out), "segment"), list_first_names(left_out, _MAX_PLACES)
    return f"left out: {many} of people who gave no answer ({named}); `dtef board --non-answers` keeps them"


_NOTES = ("note", "consistency_note")
_MAX_NOTES = 5
"""Most lines on rows whose readable responses differ, and most rows listed per note."""


def render_board(by: str, frame: pd.DataFrame, how: str = "") -> str:
    """Return a board as a table for people: each model under one name, intervals in one column, without uninformative columns.

    `how`: text on how to see hidden columns.
    """
    table = _prepare_frame(by, frame)
    return render(table, "table", columns=_choose_columns(by, table), ends=ENDS, fit=_fit(by, how))


def describe_board_columns(by: str, *frames: pd.DataFrame) -> str:
    """Return the lines after the tables of a board.

    These are notes without a column, other findings from readable responses, why there is no interval, and where columns are explained.
    """
    fit = _fit(by)
    tables = [(table, _choose_columns(by, table)) for table in (_prepare_frame(by, frame) for frame in frames)]
    columns = {name for _, names in tables for name in names}
    fitting = {name for _, names in tables for name in choose_shown_columns(names, fit)}
    reason = find_interval_reason(interval for table, _ in tables for interval in table["interval"])
    why = f"no interval: {reason}" if reason and "interval" not in columns else ""
    notes = [_build_notes(table, name) for table, names in tables for name in _NOTES if name in names and name not in fitting]
    return "\n".join(filter(None, [*notes, *map(_describe_readable_only, frames), why, f"{COLUMNS_LINE} survey/{by}"]))


def find_reasons_without_score(
    connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions
) -> Mapping[tuple[str, ...], str]:
    """Return the most frequent reason why a model's responses have no score, by model variant, context level and condition."""
    rows = connection.execute(
        "SELECT model_variant, context_level, condition, mode(reason) FROM scores "
        "WHERE reason <> '' AND (len($1) = 0 OR list_contains($1, round)) AND ($2 IS NULL OR snapshot = $2) GROUP BY ALL",
        [list(options.rounds), options.snapshot or None],
    ).fetchall()
    return {tuple(key): reason for *key, reason in rows}


def describe_unranked(frame: pd.DataFrame, reasons: Mapping[tuple[str, ...], str]) -> str:
    """Return why models of an overall board have no rank, a line per reason. `reasons`: see `find_reasons_without_score`."""
    rows = rename_variants(frame)[frame["rank"].isna()]
    models: dict[str, dict[str, None]] = {}
    for row in rows.to_dict("records"):
        if row["n_pairs"]:
            notes = [note for note in str(row["note"]).split("; ") if note.startswith(NO_RANK)]
            reason = notes[0].removeprefix(f"{NO_RANK}: ")
        else:
            key = (str(row["model_variant"]), str(row["context_level"]), str(row["condition"]))
            reason = f"no score: {reasons.get(key, 'nothing that counts here was asked')}"
        models.setdefault(reason, {})[row["model"]] = None
    return _format_list(
        "without a rank:", [f"{list_first_names([*names], _MAX_NOTES)}: {reason}" for reason, names in models.items()]
    )


def _describe_readable_only(frame: pd.DataFrame) -> str:
    """Return lines on the first rows whose readable responses give another result than the published policy; empty if there are none."""
    if "parsed_note" not in frame:
        return ""
    column_meanings = rename_variants(frame[frame["parsed_note"].fillna("") != ""])
    lines = [
        f"{label}: {words}" for label, words in zip(_list_names(column_meanings), column_meanings["parsed_note"], strict=True)
    ]
    n_more = len(lines) - _MAX_NOTES
    remainder = [f"{format_count(n_more, 'more row')}: --csv has them all, as parsed_note"] if n_more > 0 else []
    return _format_list("by only the readable responses:", [*lines[:_MAX_NOTES], *remainder])


def _build_notes(table: pd.DataFrame, column: str) -> str:
    """Return the notes of a column that does not fit the table: each note once, with its rows."""
    rows = table[table[column].fillna("") != ""]
    notes: dict[str, dict[str, None]] = {}
    for label, note in zip(_list_names(rows), rows[column], strict=True):
        notes.setdefault(note, {})[label] = None
    full = len(notes) == 1 and len(rows) == len(table)
    lines = [
        f"{'all rows' if full else list_first_names(list(labels), _MAX_NOTES, '; ')}: {note}" for note, labels in notes.items()
    ]
    return _format_list("notes:", lines)


def _list_names(frame: pd.DataFrame) -> Iterator[str]:
    rivals = frame["other_model"] if "other_model" in frame else [None] * len(frame)
    attributes = frame["attribute"] if "attribute" in frame else [None] * len(frame)
    for model, rival, attribute in zip(frame["model"], rivals, attributes, strict=True):
        yield f"{model} against {rival}" if rival else f"{model}, {attribute}" if attribute else model


def _format_list(title: str, lines: Sequence[str]) -> str:
    width = compute_terminal_fit().width
    return "\n".join([wrap_line(title, width), *(wrap_line(f"  {line}", width, 4) for line in lines)]) if lines else ""


def _fit(view: str, hint: str = "") -> Fit:
    return compute_terminal_fit(list_subject_columns(view), FIRST_OUT, hint)


def _prepare_frame(view: str, frame: pd.DataFrame) -> pd.DataFrame:
    table = rename_variants(add_ranks(frame, METRICS) if view == BY_METRIC else frame).assign(
        interval=intervals(frame, SHOWN_INTERVALS)
    )
    columns = {column: name for column, name in OWN_INTERVALS.items() if ENDS[name][0] in frame}
    table = table.assign(**{column: format_column_intervals(frame, name, ENDS[name]) for column, name in columns.items()})
    if "question" in table:  # shown once for neighbouring rows, as it takes several lines
        table["question"] = table["question"].where(table["question_id"] != table["question_id"].shift(), "")
    if {"n_questions", "n_batteries"} <= {*frame}:
        counts = zip(frame["n_questions"], frame["n_batteries"], strict=True)
        table["questions"] = [f"{questions:,} ({batteries:,})" for questions, batteries in counts]
    return table


def _choose_columns(view: str, table: pd.DataFrame) -> list[str]:
    """Return the columns of a board's table, with `condition` if any row has an unusual one."""
    columns = [name for name in list_board_columns(view) if name in table and _is_informative(name, table)]
    if set(table["condition"]) <= {BlueprintOptions().condition}:
        return columns
    after = columns.index("context_level" if "context_level" in columns else "model") + 1
    return [*columns[:after], "condition", *columns[after:]]


_SUBSTITUTES = {"parsed_score": "score", "adjusted_score": "score"}
"""Columns that equal another one if every response is readable and all models have the same questions."""


def _is_informative(name: str, table: pd.DataFrame) -> bool:
    if name in _SUBSTITUTES:  # only if the numbers differ
        return bool((table[name] - table[_SUBSTITUTES[name]]).abs().gt(5e-5).any())
    if name == "parsed_verdict":  # only if it differs from the verdict
        return bool(
            (table["parsed_note"].fillna("") if "parsed_note" in table else table[name].ne(table["verdict"])).astype(bool).any()
        )
    if name == "interval" and find_interval_reason(table["interval"]):
        return any(table[low].notna().any() for low, _ in SHOWN_INTERVALS if low in table)
    if name in ("interval", "note", "consistency_note", *OWN_INTERVALS):
        return bool(table[name].fillna("").ne("").any())
    return True
