"""The rows of `qa_scores`: what every scorer of an item makes of every response to it. No model is asked, and nothing is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.qa.judging.arbitration import NOT_IN_SAMPLE
from dtef_pipeline.qa.model import ItemScore, Written
from dtef_pipeline.qa.tables import QA_SCORES

_FROM_RESPONSES = (
    "suite",
    "part",
    "item_id",
    "condition",
    "model",
    "model_variant",
    "temperature",
    "draw",
    "snapshot",
    "prompt_id",
    "request_key",
    "answered_at",
)
_OF_THE_ITEM = ("type", "cluster", "truth_id")
ANSWERED_CALL = "answered"
"""The state of a call that brought a response."""
_FILTERED = "content_filter"


class Measure(NamedTuple):
    """What a score is of, and what it rests on."""

    scorer: str
    version: int
    metric: str
    measured_by: str
    """Scores that differ in it are never averaged together: `exact_choice 1`."""
    lexicon: str | None = None


ScoreOf = Callable[[int, Written], Sequence[tuple[Measure, ItemScore]]]
"""Given the place of a response in its table and what was written, its scores: one per metric."""


@dataclass(slots=True)
class _Made:
    """Scores as they are made, column by column; `place`: that of the response in its table."""

    place: list[int] = field(default_factory=list)
    measure: list[Measure] = field(default_factory=list)
    score: list[ItemScore] = field(default_factory=list)

    def add(self, place: int, measure: Measure, score: ItemScore) -> None:
        self.place.append(place)
        self.measure.append(measure)
        self.score.append(score)


def _is_never_left_out(place: int, measure: Measure) -> bool:
    return False


def score_rows(
    responses: pa.Table,
    items: pa.Table,
    scores_of: ScoreOf,
    measures_of: Mapping[str, Sequence[Measure]],
    left_out: Callable[[int, Measure], bool] = _is_never_left_out,
) -> pa.Table:
    """One row per response, scorer and metric, in the order of the responses.

    `responses`: rows of `qa_responses`; `items`: rows of `qa_items`, of which each response has one. `measures_of`: by item what is scored,
    for responses that there are not: these have the state of their call in place of a score, but where `left_out` says of their place that a
    judge's sample would have left them out.
    """
    made = _Made()
    names = ("item_id", "call_status", "response", "finish_reason", "error")
    for place, (item, status, text, reason, error) in enumerate(
        zip(*(responses[name].to_pylist() for name in names), strict=True)
    ):
        if (without := _score_without_response(status, reason, error)) is None:
            for measure, score in scores_of(place, Written(text, reason)):
                made.add(place, measure, score)
        else:
            for measure in measures_of[item]:
                made.add(place, measure, NOT_IN_SAMPLE if left_out(place, measure) else without)
    return _build_score_table(responses, items, made)


def _score_without_response(status: str, reason: str | None, error: str | None) -> ItemScore | None:
    """The score of a call without a response that can be held against the model; None: there is one."""
    if status != ANSWERED_CALL:
        return ItemScore(status, reason=error)
    if reason == _FILTERED:
        return ItemScore("refused", reason="the provider's content filter stopped the response")
    return None


def _build_score_table(responses: pa.Table, items: pa.Table, made: _Made) -> pa.Table:
    taken = responses.select(list(_FROM_RESPONSES)).take(pa.array(made.place, pa.int64()))
    columns: dict[str, Any] = {name: taken[name] for name in taken.column_names}
    columns |= _take_item_columns(taken["item_id"], items)
    columns |= {
        "scorer": [one.scorer for one in made.measure],
        "scorer_version": [one.version for one in made.measure],
        "metric": [one.metric for one in made.measure],
        "measured_by": [one.measured_by for one in made.measure],
        "lexicon": [one.lexicon for one in made.measure],
        "status": [one.status for one in made.score],
        "value": [one.value for one in made.score],
        "score": [one.score for one in made.score],
        "how": [one.how for one in made.score],
        "flags": [list(one.flags) for one in made.score],
        "detail": [_encode_own(one.own) for one in made.score],
        "reason": [one.reason for one in made.score],
    }
    arrays = [
        column.cast(one.type) if isinstance(column := columns[one.name], pa.ChunkedArray) else pa.array(column, one.type)
        for one in QA_SCORES
    ]
    return pa.table(arrays, schema=QA_SCORES)


def _take_item_columns(wanted: pa.ChunkedArray, items: pa.Table) -> dict[str, pa.ChunkedArray]:
    import pyarrow.compute as pc

    at = pc.index_in(wanted, value_set=items["item_id"].combine_chunks())
    return {name: items[name].take(at) for name in _OF_THE_ITEM}


def _encode_own(own: Mapping[str, Any]) -> str | None:
    return json.dumps(own, ensure_ascii=False, sort_keys=True, default=str) if own else None
