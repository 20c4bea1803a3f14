"""Everything that is published of the scores, by view: boards with intervals and tiers, and the tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import BY_METRIC, BoardEvidence, board, load_evidence
from dtef_pipeline.boards.cells import BoardOptions, load_cells
from dtef_pipeline.boards.comparisons import comparisons, tiers, why_no_tier
from dtef_pipeline.boards.reliability import reliability
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.consistency import consistency_board, consistency_components, ranked_by, with_fewer_segments
from dtef_pipeline.survey.boards.published import BY_NAME
from dtef_pipeline.survey.boards.redrawn import DRAWN_FROM
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
_PARTLY = 0.5
"""Coverage below which a rank comes with a caution."""


def view(connection: Connection, by: str, options: BoardOptions, evidence: BoardEvidence | None = None) -> pd.DataFrame:
    """The rows of a view under the options; `evidence` is what `load_evidence` made of the same options, if it was needed before.

    Boards are those of `boards.board`, and `consistency`, ranked by its variance component; of the others see `schemas`. `overall` has each
    model's `tier` and, where a ranked model has none, the reason as `tier_note`. With `options.resamples` 0 nothing is resampled: boards
    have no intervals, tiers and components. Raises ConfigError for an unknown view.
    """
    if by not in BY_NAME:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(BY_NAME)}")
    if by in _MAKERS:
        return _MAKERS[by](connection, options, evidence)
    if options.resamples and by != BY_METRIC:
        evidence = evidence or load_evidence(connection, options)
    if by == "consistency":
        cells = evidence.cells if evidence else load_cells(connection, options)
        frame = consistency_board(cells, options)
        if options.resamples:
            noise = evidence.noise.score if evidence and evidence.noise else None
            components = consistency_components(cells, options, noise).astype(dict.fromkeys(KEYS.series, str))
            frame = ranked_by(frame.merge(components, on=list(KEYS.series), how="left"), "segment_sd_true")
            frame["consistency_note"] = with_fewer_segments(frame)
    else:
        frame = board(connection, by, options, evidence)
    if evidence is None or not options.resamples or by == BY_METRIC:
        return frame
    if by == "overall":
        compared = comparisons(evidence.cells, replace(options, resamples=0), parsed=False)
        frame.insert(1, "tier", tiers(frame, compared, KEYS))
        frame["tier_note"] = why_no_tier(frame, compared, KEYS)
    if "note" in frame:
        frame["note"] = [
            _with_caution(*row) for row in zip(frame["note"], frame["model"], frame["coverage"], frame["rank"], strict=True)
        ]
    return frame.assign(resamples=options.resamples, seed=options.seed)


def is_partly(coverage: float, rank: Any) -> bool:
    """Whether a model is ranked by less than half of the board's pairs. `coverage`: the fraction of them that it has a score for."""
    return coverage < _PARTLY and pd.notna(rank)


def _with_caution(note: str, model: str, coverage: float, rank: Any) -> str:
    """A board's note, with what a reader of the row should know besides."""
    cautions = [_CONTAINS_ANSWERS] if model == POPULATION_MARGINAL else []
    if is_partly(coverage, rank):
        cautions.append(
            f"has a score for {coverage:.0%} of the pairs: its rank supposes the same lead over the marginal on the others"
        )
    return "; ".join(filter(None, [note, *cautions]))


def _comparisons(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return comparisons(cells, options, noise.score if noise else None)


def _responsiveness(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return responsiveness(cells, context_shown(connection), options, noise.score if noise else None)


def _segment_gaps(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return segment_gaps(cells, options, noise.score if noise else None)


def _reliability(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> pd.DataFrame:
    return reliability(connection, options)


_MAKERS: Mapping[str, Callable[[Connection, BoardOptions, BoardEvidence | None], pd.DataFrame]] = {
    "comparisons": _comparisons,
    "context": _responsiveness,
    "gaps": _segment_gaps,
    "reliability": _reliability,
}
"""What makes the views that are no boards, by name."""
