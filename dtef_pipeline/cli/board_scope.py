"""What a board is about, in words: rounds, segments, questions, and which of them were drawn."""

from collections.abc import Iterator
from dataclasses import replace

import duckdb

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.question_draw import DRAW_ORDERS
from dtef_pipeline.text.counted import counted


def board_scope(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions, level: str) -> str:
    """What the board of a context level is over: rounds, segments, questions, the level, snapshots."""
    counted_responses = f"of snapshot {options.snapshot}" if options.snapshot else "the latest response to each prompt"
    part = _part(connection, options)
    return f"all models on {', '.join(options.rounds)}: {part}; context {level}; {counted_responses}"


def lines_of_samples(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> Iterator[str]:
    """A line for each round of which language models were asked a sample: the smallest draw that holds all their scores."""
    if not has_table(connection, "survey_responses") or not {*DRAW_ORDERS} <= {*connection.table("survey_responses").columns}:
        return
    drawn = connection.execute(
        f"SELECT round, {', '.join(f'max({name}) + 1' for name in DRAW_ORDERS)} "
        f"FROM scores JOIN survey_responses USING (round, segment, question_id) WHERE NOT {COMPUTED_SQL} "
        "AND (len($1) = 0 OR list_contains($1, round)) AND ($2 IS NULL OR snapshot = $2) GROUP BY 1 ORDER BY 1",
        [list(options.rounds), options.snapshot],
    ).fetchall()
    for name, *sample in drawn:
        questions, segments = sample
        of_round = replace(options, rounds=(name,), questions=questions, sample_segments=segments)
        there = [_places_drawn(connection, column, of_round) for column in DRAW_ORDERS]
        if sample != there:
            yield f"language models were asked a sample of {name}: {_part(connection, of_round)}"


def _part(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """The segments and questions of a board."""
    return f"{_segments(connection, options)}; {_questions(connection, options)}"


def _segments(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """The segments of a board, and how many of each round a sample draws for each question. A round may have fewer."""
    named, asked = ", ".join(options.segments), options.sample_segments
    there = _places_drawn(connection, "segment_order", options)
    if asked is None or there is None or there <= asked:
        return named or "all segments"
    return "; ".join(filter(None, [named, f"{asked:,} of {counted(there, 'segment')} drawn for each question"]))


def _places_drawn(connection: duckdb.DuckDBPyConnection, column: str, options: SurveyBoardOptions) -> int | None:
    """The most questions of a round, or segments of a question, that can be drawn; None: nothing is known of the rounds."""
    ((there,),) = connection.execute(
        f"SELECT max({column}) + 1 FROM survey_responses WHERE list_contains($1, round)", [list(options.rounds)]
    ).fetchall()
    return None if there is None else int(there)


def _questions(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """The questions of a board. A round may have fewer than were asked for."""
    asked = options.questions
    if asked is None:
        return "all questions"
    there = _places_drawn(connection, "draw_order", options)
    if there is not None and there <= asked:
        return "all questions" if len(options.rounds) > 1 else f"all {counted(there, 'question')}"
    if there is None or len(options.rounds) > 1:
        return f"{counted(asked, 'question')} of each round"
    return f"{asked:,} of {counted(there, 'question')}"
