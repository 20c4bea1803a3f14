"""The points of responses: the consensus of judges on criteria in words, and what functions find."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.judging.consensus import CONSENSUS_COLUMNS, compute_consensus
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT, TEXT_KIND
from dtef_pipeline.rubric.conversations import OK
from dtef_pipeline.rubric.functions import FunctionScore, ReadyFunction
from dtef_pipeline.rubric.levels import CRITERION_KEYS, RESPONSE_KEYS
from dtef_pipeline.rubric.tables import RUBRIC_POINTS
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

NOT_JUDGED = "not judged"
"""Why a point has no score that no judge was asked about: the judging stage has not run since the response or the criterion came."""
_KEY = (*RESPONSE_KEYS, *CRITERION_KEYS)
_OF_CRITERIA = ("criterion_id", "kind", "weight", "source")
Prepare = Callable[[str, Any], ReadyFunction]
"""Makes a function ready for any number of responses, given its name and its argument."""


def build_point_rows(responses: pa.Table, criteria: pa.Table, judgements: pa.Table, prepare: Prepare) -> pa.Table:
    """The rows of `rubric_points`: one per criterion of each response that has a text, in the order of responses and criteria.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_judgements` of one blueprint and snapshot. Judgements of criteria that the
    blueprint no longer has, or of responses that are gone, are not used.
    """
    answered = responses.filter(pc.equal(responses["status"], OK))
    planned = _plan_points(answered, criteria)
    judged = _build_judged_points(planned.filter(pc.equal(planned["kind"], TEXT_KIND)), judgements)
    computed = _compute_function_points(answered, criteria, prepare)
    rows = pa.concat_tables([judged, computed])
    place = ["prompt", "model", "model_variant", "temperature", "system_index", "draw", "block", "path", "position"]
    return rows.take(pc.sort_indices(rows.select(place), [(name, "ascending") for name in place]))


def _plan_points(answered: pa.Table, criteria: pa.Table) -> pa.Table:
    """Every criterion of every response with a text: the key columns, and what the criterion says of itself."""
    named = answered.select(list(RESPONSE_KEYS))
    own = criteria.select(["prompt", *CRITERION_KEYS, *_OF_CRITERIA])
    return named.join(own, "prompt", join_type="inner")


def _build_judged_points(planned: pa.Table, judgements: pa.Table) -> pa.Table:
    inverted = pc.equal(judgements["block"], SHOULD_NOT)
    found = compute_consensus(judgements.append_column("inverted", inverted), [*_KEY, "criterion_id"])
    # A join takes no null for a value; paths and temperatures may be null.
    left, right = _add_key_code(planned), _add_key_code(found)
    names = [column.name for column in CONSENSUS_COLUMNS]
    at = pc.index_in(left["code"], value_set=right["code"].combine_chunks())
    taken = right.select(names).take(at)
    missing = pc.is_null(at)
    columns = {name: taken[name] for name in names}
    columns["reason"] = pc.if_else(missing, NOT_JUDGED, taken["reason"])
    columns["low"], columns["high"] = pc.coalesce(taken["low"], 0.0), pc.coalesce(taken["high"], 1.0)
    columns["inverted"] = pc.equal(planned["block"], SHOULD_NOT)
    columns["partial"] = pc.coalesce(taken["partial"], False)
    columns["labelled"] = pa.repeat(False, len(planned))
    for name in ("n_judges", "n_answered"):
        columns[name] = pc.coalesce(taken[name], 0)
    return _cast_to_points(planned, columns)


def _compute_function_points(answered: pa.Table, criteria: pa.Table, prepare: Prepare) -> pa.Table:
    by_prompt: dict[str, list[tuple[dict[str, Any], ReadyFunction]]] = {}
    for row in criteria.filter(pc.not_equal(criteria["kind"], TEXT_KIND)).to_pylist():
        by_prompt.setdefault(row["prompt"], []).append((row, _prepare_criterion(row, prepare)))
    needed = answered.filter(pc.is_in(answered["prompt"], pa.array(list(by_prompt), pa.string())))
    keys = needed.select(list(RESPONSE_KEYS)).to_pylist()
    rows = []
    for key, text, transcript in zip(keys, needed["text"].to_pylist(), needed["transcript"].to_pylist(), strict=True):
        messages = [{"role": one["role"], "content": _strip_message_thinking(one)} for one in transcript]
        context = {"messages": messages, "modelId": key["model"]}
        rows += [{**key, **_make_point_row(row, ready(text, context))} for row, ready in by_prompt[key["prompt"]]]
    return pa.Table.from_pylist(rows, schema=RUBRIC_POINTS)


def _strip_message_thinking(message: Mapping[str, str]) -> str:
    return strip_thinking(message["text"]).strip() if message["role"] == "assistant" else message["text"]


def _prepare_criterion(criterion: Mapping[str, Any], prepare: Prepare) -> ReadyFunction:
    return prepare(criterion["fn"], None if criterion["args"] is None else json.loads(criterion["args"]))


def _make_point_row(criterion: Mapping[str, Any], found: FunctionScore) -> dict[str, Any]:
    inverted = criterion["block"] == SHOULD_NOT
    score = found.score if found.score is None or not inverted else 1 - found.score
    low, high = (score, score) if score is not None else (0.0, 1.0)
    return {
        **{name: criterion[name] for name in (*CRITERION_KEYS, *_OF_CRITERIA)},
        "score": score,
        "low": low,
        "high": high,
        "n_judges": 0,
        "n_answered": 0,
        "partial": False,
        "spread": None,
        "inverted": inverted,
        "reason": found.reason,
        "explanation": replace_surrogates(found.explanation),
        "labelled": False,
    }


def _add_key_code(rows: pa.Table) -> pa.Table:
    names: Sequence[str] = (*_KEY, "criterion_id")
    texts = [pc.coalesce(pc.cast(rows[name], pa.string()), "\x00") for name in names]
    return rows.append_column("code", pc.binary_join_element_wise(*texts, "\x1f"))


def _cast_to_points(rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    known = {name: rows[name] for name in rows.column_names} | dict(columns)
    empty = pa.nulls(len(rows))
    return pa.table([known.get(one.name, empty).cast(one.type) for one in RUBRIC_POINTS], schema=RUBRIC_POINTS)
