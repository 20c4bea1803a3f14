"""The points of responses: the consensus of judges on criteria in words, and the scores of functions."""

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
"""Why a point without judgements has no score: the judging stage has not run since the response or the criterion was added."""
_KEY = (*RESPONSE_KEYS, *CRITERION_KEYS)
_OF_CRITERIA = ("criterion_id", "kind", "weight", "source")
Prepare = Callable[[str, Any], ReadyFunction]
"""Makes a function ready for any number of responses, given its name and its argument."""


def build_point_rows(responses: pa.Table, criteria: pa.Table, judgements: pa.Table, prepare: Prepare) -> pa.Table:
    """Return the rows of `rubric_points`: one per criterion of each response that has a text, sorted by the keys of both.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_judgements` of one blueprint and snapshot. Judgements of deleted criteria or
    responses are ignored.
    """
    answers = responses.filter(pc.equal(responses["status"], OK))
    named_criteria = criteria.select(["prompt", *CRITERION_KEYS, *_OF_CRITERIA])
    plan = answers.select(list(RESPONSE_KEYS)).join(named_criteria, "prompt", join_type="inner")
    judged_points = _build_judged_points(plan.filter(pc.equal(plan["kind"], TEXT_KIND)), judgements)
    function_points = _compute_function_points(answers, criteria, prepare)
    rows = pa.concat_tables([judged_points, function_points])
    place = ["prompt", "model", "model_variant", "temperature", "system_index", "draw", "block", "path", "position"]
    return rows.take(pc.sort_indices(rows.select(place), [(name, "ascending") for name in place]))


def _build_judged_points(plan: pa.Table, judgements: pa.Table) -> pa.Table:
    is_inverted = pc.equal(judgements["block"], SHOULD_NOT)
    consensus = compute_consensus(judgements.append_column("inverted", is_inverted), [*_KEY, "criterion_id"])
    # A join takes no null for a value; paths and temperatures may be null.
    left, right = _add_key_code(plan), _add_key_code(consensus)
    names = [column.name for column in CONSENSUS_COLUMNS]
    index = pc.index_in(left["code"], value_set=right["code"].combine_chunks())
    matches = right.select(names).take(index)
    missing = pc.is_null(index)
    columns = {name: matches[name] for name in names}
    columns["reason"] = pc.if_else(missing, NOT_JUDGED, matches["reason"])
    columns["low"], columns["high"] = pc.coalesce(matches["low"], 0.0), pc.coalesce(matches["high"], 1.0)
    columns["inverted"] = pc.equal(plan["block"], SHOULD_NOT)
    columns["partial"] = pc.coalesce(matches["partial"], False)
    columns["labelled"] = pa.repeat(False, len(plan))
    for name in ("n_judges", "n_answered"):
        columns[name] = pc.coalesce(matches[name], 0)
    all_columns = {name: plan[name] for name in plan.column_names} | columns
    empty = pa.nulls(len(plan))
    return pa.table([all_columns.get(field.name, empty).cast(field.type) for field in RUBRIC_POINTS], schema=RUBRIC_POINTS)


def _compute_function_points(answers: pa.Table, criteria: pa.Table, prepare: Prepare) -> pa.Table:
    by_prompt: dict[str, list[tuple[dict[str, Any], ReadyFunction]]] = {}
    for row in criteria.filter(pc.not_equal(criteria["kind"], TEXT_KIND)).to_pylist():
        argument = None if row["args"] is None else json.loads(row["args"])
        by_prompt.setdefault(row["prompt"], []).append((row, prepare(row["fn"], argument)))
    texts = answers.filter(pc.is_in(answers["prompt"], pa.array(list(by_prompt), pa.string())))
    keys = texts.select(list(RESPONSE_KEYS)).to_pylist()
    rows = []
    for key, text, transcript in zip(keys, texts["text"].to_pylist(), texts["transcript"].to_pylist(), strict=True):
        messages = [{"role": message["role"], "content": _strip_message_thinking(message)} for message in transcript]
        context = {"messages": messages, "modelId": key["model"]}
        rows += [{**key, **_make_point_row(row, ready(text, context))} for row, ready in by_prompt[key["prompt"]]]
    return pa.Table.from_pylist(rows, schema=RUBRIC_POINTS)


def _strip_message_thinking(message: Mapping[str, str]) -> str:
    return strip_thinking(message["text"]).strip() if message["role"] == "assistant" else message["text"]


def _make_point_row(criterion: Mapping[str, Any], result: FunctionScore) -> dict[str, Any]:
    is_inverted = criterion["block"] == SHOULD_NOT
    score = result.score if result.score is None or not is_inverted else 1 - result.score
    low, high = (score, score) if score is not None else (0.0, 1.0)
    return {
        **{name: criterion[name] for name in (*CRITERION_KEYS, *_OF_CRITERIA)},
        "score": score,
        "low": low,
        "high": high,
        "n_judges": 0,
        "n_answered": 0,
        "partial": False,
        "inverted": is_inverted,
        "reason": result.reason,
        "explanation": replace_surrogates(result.explanation),
        "labelled": False,
    }


def _add_key_code(rows: pa.Table) -> pa.Table:
    names: Sequence[str] = (*_KEY, "criterion_id")
    texts = [pc.coalesce(pc.cast(rows[name], pa.string()), "\x00") for name in names]
    return rows.append_column("code", pc.binary_join_element_wise(*texts, "\x1f"))
