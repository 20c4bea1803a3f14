"""Everything that is published of the scores, by view: boards with intervals and tiers, and the tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import BY_METRIC, BoardEvidence, board, load_evidence
from dtef_pipeline.boards.cells import BoardOptions, load_cells
from dtef_pipeline.boards.comparisons import comparisons, contradictions, rank_ranges, tiers, why_no_tier
from dtef_pipeline.boards.reliability import reliability
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.consistency import consistency_board, consistency_components, ranked_by, with_fewer_segments
from dtef_pipeline.survey.boards.noise import DRAWN_FROM
from dtef_pipeline.survey.boards.published import BREAKDOWNS, BY_NAME, PUBLISHED
from dtef_pipeline.survey.boards.responsiveness import context_shown, responsiveness
from dtef_pipeline.survey.boards.segment_gaps import segment_gaps
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import CORRECTED, METRICS

Connection = duckdb.DuckDBPyConnection
CODED = (*KEYS.row, *KEYS.described)
"""Text columns of `scores` that repeat: as codes they are grouped and sorted several times faster."""
HELD = {
    "scores": (*CODED, "draw", "status", "circular", "predicted", *METRICS, *CORRECTED),
    "survey_responses": (*DRAWN_FROM, "question_text", "battery", "options"),
    "reference_scores": ("*",),
    "blueprints": (*KEYS.cell, "context_included"),
}
"""Tables that views are made of, and their columns; `scores` must be there, the others say more."""
_CONTAINS_ANSWERS = "contains the segments' own answers: it can come near the ceiling or pass it"
LEADERBOARD = (
    *("rank", "rank_low", "rank_high", "tier", *MODEL, *KEYS.asked, "targets", "metric"),
    *("score", "score_low", "score_high", "adjusted_score", "parsed_score"),
    *("ceiling", "skill", "skill_low", "skill_high", "worth"),
    *("n_pairs", "n_questions", "n_batteries", "parse_rate", "note"),
)
"""The columns of the stored overall board, in order."""


def view(connection: Connection, by: str, options: BoardOptions, evidence: BoardEvidence | None = None) -> pd.DataFrame:
    """The rows of a view under the options; `evidence` is what `load_evidence` made of the same options, if it was needed before.

    Boards are those of `boards.board`, and `consistency`, ranked by its variance component; of the others see `schemas`. `overall` has each
    model's `tier` and the range of its ranks. Without `options.intervals` boards have no intervals, tiers and components. Raises ConfigError
    for an unknown view.
    """
    if by not in BY_NAME:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(BY_NAME)}")
    if by in _MAKERS:
        return _MAKERS[by](connection, options, evidence)
    if options.intervals and by != BY_METRIC:
        evidence = evidence or load_evidence(connection, options)
    if by == "consistency":
        return _consistency(connection, options, evidence)
    frame = board(connection, by, options, evidence)
    if evidence is None or not options.intervals or by == BY_METRIC:
        return frame
    cautions = {POPULATION_MARGINAL: _CONTAINS_ANSWERS}
    notes = [frame["note"], frame["model"].map(cautions).fillna("")]
    if by == "overall":
        compared = _comparisons(connection, options, evidence, parsed=False)
        frame = frame.join(rank_ranges(frame, compared, KEYS)).assign(tier=tiers(frame, compared, KEYS))
        notes += [why_no_tier(frame, compared, KEYS), contradictions(frame, compared, KEYS)]
        frame = frame[[name for name in LEADERBOARD if name in frame]]
    return frame.assign(note=["; ".join(filter(None, parts)) for parts in zip(*notes, strict=True)])


def published_tables(
    tables: Sequence[str], connection: Connection, options: BoardOptions, evidence: BoardEvidence | None = None
) -> dict[str, pd.DataFrame]:
    """Published tables, by name, of the views that they store."""
    made = [(one, view(connection, one.name, options, evidence)) for one in PUBLISHED if one.table in tables]
    cuts = [frame.assign(cut=one.name) for one, frame in made if one.table == BREAKDOWNS]
    whole = {one.table: frame for one, frame in made if one.table != BREAKDOWNS}
    return {**whole, BREAKDOWNS: pd.concat(cuts, ignore_index=True)} if cuts else whole


def _consistency(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = consistency_board(cells, options)
    if not options.intervals:
        return frame
    noise = evidence.noise.score if evidence and evidence.noise else None
    components = consistency_components(cells, options, noise).astype(dict.fromkeys(KEYS.series, str))
    frame = ranked_by(frame.merge(components, on=list(KEYS.series), how="left"), "segment_sd_true")
    return frame.assign(consistency_note=with_fewer_segments(frame), seed=options.seed)


def _comparisons(
    connection: Connection, options: BoardOptions, evidence: BoardEvidence | None, *, parsed: bool = True
) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return comparisons(cells, options, noise.score if noise else None, parsed=parsed)


def _responsiveness(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return responsiveness(cells, context_shown(connection), options, noise.score if noise else None)


def _segment_gaps(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return segment_gaps(cells, options, noise.score if noise else None)


def _reliability(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    return reliability(connection, options, evidence.cells if evidence else None)


_MAKERS: Mapping[str, Callable[[Connection, BoardOptions, BoardEvidence | None], pd.DataFrame]] = {
    "comparisons": _comparisons,
    "context": _responsiveness,
    "gaps": _segment_gaps,
    "reliability": _reliability,
}
"""What makes the views that are no boards, by name."""
