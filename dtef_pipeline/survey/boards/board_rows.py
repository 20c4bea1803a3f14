"""The rows of each board: rankings with intervals and ranges of ranks, and tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import BY_METRIC, BoardEvidence, board, load_evidence
from dtef_pipeline.boards.cells import BoardOptions, Deviations, load_cells
from dtef_pipeline.boards.comparisons import compare_all_pairs, list_contradictions, rank_ranges
from dtef_pipeline.boards.reliability import compute_reliability
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.conditions import compare_conditions, compute_responsiveness, load_context_shown
from dtef_pipeline.survey.boards.noise import SAMPLE_COLUMNS
from dtef_pipeline.survey.boards.segment_gaps import (
    add_segment_cautions,
    build_consistency_board,
    compute_segment_gaps,
    estimate_consistency,
    rank_by_spread,
)
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS, BY_NAME, PUBLISHED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import CORRECTED, METRICS

Connection = duckdb.DuckDBPyConnection
TEXT_COLUMNS = (*KEYS.row, *KEYS.described)
"""Text columns of `scores` that repeat: as codes they are grouped and sorted several times faster."""
BOARD_SOURCES = {
    "scores": (*TEXT_COLUMNS, "draw", "status", "circular", "predicted", *METRICS, *CORRECTED),
    "survey_responses": (*SAMPLE_COLUMNS, "question_text", "battery", "options"),
    "reference_scores": ("*",),
    "blueprints": (*KEYS.cell, "context_included"),
}
"""The tables that boards are computed from, and their columns; `scores` is required, the others are optional."""
_CONTAINS_ANSWERS = "contains the segments' own answers, so its score can approach or exceed the ceiling"
LEADERBOARD = (
    *("rank", "rank_low", "rank_high", *MODEL, *KEYS.asked, "targets", "metric"),
    *("score", "score_low", "score_high", "adjusted_score", "parsed_score"),
    *("ceiling", "skill", "skill_low", "skill_high", "worth"),
    *("n_pairs", "n_questions", "n_batteries", "parse_rate", "note"),
)
"""The columns of the stored overall board, in order."""


def compute_board(
    connection: Connection, by: str, options: BoardOptions, evidence: BoardEvidence | None = None
) -> pd.DataFrame:
    """Return the rows of a board. `evidence` is the result of `load_evidence` for the same options, if it exists already.

    Rankings are those of `boards.board`, and `consistency`, ranked by its variance component; `schemas` has the others. `overall` has the
    range of each model's ranks. Without `options.intervals` boards have no intervals, ranges and components. Raises
    ConfigError for an unknown board.
    """
    if by not in BY_NAME:
        raise ConfigError(f"board {by!r}: allowed: {', '.join(BY_NAME)}")
    if by == "conditions":
        assert isinstance(options, SurveyBoardOptions)
        return compare_conditions(connection, options)
    if by == "reliability":
        return compute_reliability(connection, options, evidence.cells if evidence else None)
    if by in _TESTS or (options.intervals and by != BY_METRIC):
        evidence = evidence or load_evidence(connection, options)
    if evidence and by in _TESTS:
        return _TESTS[by](connection, options, evidence.cells, _get_score_noise(evidence))
    if by == "consistency":
        return _compute_consistency(connection, options, evidence)
    frame = board(connection, by, options, evidence)
    if evidence is None or not options.intervals or by == BY_METRIC:
        return frame
    cautions = {POPULATION_MARGINAL: _CONTAINS_ANSWERS}
    notes = [frame["note"], frame["model"].map(cautions).fillna("")]
    if by == "overall":
        comparisons = compare_all_pairs(evidence.cells, options, _get_score_noise(evidence), has_parsed=False)
        notes.append(list_contradictions(frame, comparisons, KEYS))
        frame = frame.join(rank_ranges(frame, comparisons, KEYS))
        frame = frame[[name for name in LEADERBOARD if name in frame]]
    return frame.assign(note=["; ".join(filter(None, parts)) for parts in zip(*notes, strict=True)])


def build_published_tables(
    tables: Sequence[str], connection: Connection, options: BoardOptions, evidence: BoardEvidence | None = None
) -> dict[str, pd.DataFrame]:
    """Return published tables, by name, of the boards that they store."""
    frames = [(entry, compute_board(connection, entry.name, options, evidence)) for entry in PUBLISHED if entry.table in tables]
    cuts = [frame.assign(cut=entry.name) for entry, frame in frames if entry.table == BREAKDOWNS]
    by_table = {entry.table: frame for entry, frame in frames if entry.table != BREAKDOWNS}
    return {**by_table, BREAKDOWNS: pd.concat(cuts, ignore_index=True)} if cuts else by_table


def _compute_consistency(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = build_consistency_board(cells, options)
    if not options.intervals:
        return frame
    components = estimate_consistency(cells, options, evidence and _get_score_noise(evidence)).astype(
        dict.fromkeys(KEYS.series, str)
    )
    frame = rank_by_spread(frame.merge(components, on=list(KEYS.series), how="left"), "segment_sd_true")
    return frame.assign(consistency_note=add_segment_cautions(frame), seed=options.seed)


def _get_score_noise(evidence: BoardEvidence) -> Deviations | None:
    return evidence.noise.score if evidence.noise else None


Test = Callable[[Connection, BoardOptions, pd.DataFrame, Deviations | None], pd.DataFrame]
_TESTS: Mapping[str, Test] = {
    "comparisons": lambda _, options, cells, noise: compare_all_pairs(cells, options, noise),
    "context": lambda connection, options, cells, noise: compute_responsiveness(
        cells, load_context_shown(connection), options, noise
    ),
    "gaps": lambda _, options, cells, noise: compute_segment_gaps(cells, options, noise),
}
"""The functions that compute the boards of tests, by name."""
