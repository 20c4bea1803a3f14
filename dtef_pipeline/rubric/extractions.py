"""The extraction of key points for whole blueprints: who is asked what, the rows that it becomes, and what it does to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.judging.call_ledger import CallLedger, most_tokens, tokens_of
from dtef_pipeline.rubric.blueprint_rows import criterion_id
from dtef_pipeline.rubric.conversations import used
from dtef_pipeline.rubric.key_points import (
    EXTRACTION_TOKENS,
    PointsReply,
    extraction_request,
    further_extraction,
    lacks_criteria,
    point_criteria,
    read_points,
)
from dtef_pipeline.rubric.model import EXTRACTED, TEXT_KIND, Blueprint, Turn
from dtef_pipeline.rubric.summary import ANALYST_ROLE
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_EXTRACTIONS

FOR_KEY_POINTS = " (key points)"
"""Stands behind the name of a model in an estimate, where it extracts points rather than sums up."""
USUAL_POINTS = 6
"""An estimate takes an ideal answer to have so many key points, until they are extracted."""
_USUAL_POINT = "a key point of the ideal answer, such as one that names what has to be done "
_USUAL_REPLY_TOKENS = 250


@dataclass(slots=True)
class Extracting:
    """The key points of one prompt, to be had from a model: an episode."""

    blueprint: str
    prompt: str
    first: Request

    def next(self, history: Sequence[Response]) -> Request | None:
        """The first request; then, once, the one that asks for a readable reply."""
        return further_extraction(self.first, [one.text for one in history]) if history else self.first


def extractings(blueprint: Blueprint, model: ModelSpec) -> list[Extracting]:
    """An episode for each prompt with an ideal answer and no criteria."""
    return [
        Extracting(blueprint.id, one.id, extraction_request(one.turns, one.ideal, model))
        for one in blueprint.prompts
        if lacks_criteria(one) and one.ideal is not None
    ]


def extracted(came: Played) -> PointsReply:
    """What the replies of an episode come to: the last one decides, and a failed call leaves nothing."""
    if came.failure is not None:
        return PointsReply((), came.failure.status)
    return read_points(came.responses[-1].text)


def extraction_rows(episodes: Sequence[Extracting], played: Sequence[Played]) -> pa.Table:
    """The rows of `rubric_extractions`, in the order of the episodes."""
    rows = [_extraction_row(one, came) for one, came in zip(episodes, played, strict=True)]
    return pa.Table.from_pylist(rows, schema=RUBRIC_EXTRACTIONS)


def _extraction_row(one: Extracting, came: Played) -> dict[str, Any]:
    found = extracted(came)
    outcomes: list[Response | Failure] = [*came.responses, *([came.failure] if came.failure else [])]
    return {
        "blueprint": one.blueprint,
        "prompt": one.prompt,
        "analyst": one.first.model.name,
        "analyst_variant": one.first.model.variant,
        "n_points": len(found.points),
        "reason": found.reason,
        "attempts": len(outcomes),
        "raw": [response.text for response in came.responses],
        "request_keys": [outcome.request_key for outcome in outcomes],
        **used(came.responses),
        "error": came.failure.message if came.failure else None,
    }


def will_be_judged(prompts: pa.Table, criteria: pa.Table, *, extracting: bool) -> bool:
    """Whether a blueprint has criteria in words, or an ideal answer that they can be extracted from.

    Tables: `rubric_prompts` with `prompt` and `ideal`, `rubric_criteria` with `prompt` and `kind`.
    """
    known = set(criteria["prompt"].to_pylist())
    ideals = zip(prompts["prompt"].to_pylist(), prompts["ideal"].to_pylist(), strict=True)
    return TEXT_KIND in criteria["kind"].to_pylist() or (
        extracting and any(ideal and one not in known for one, ideal in ideals)
    )


def planned_criteria(prompts: pa.Table, criteria: pa.Table, model: ModelSpec | None, ledger: CallLedger) -> pa.Table:
    """The criteria that a run would judge by, and in the ledger what their extraction would ask. `model` None: nothing is extracted.

    Tables: `rubric_prompts` and `rubric_criteria` of one blueprint. Points that are yet to be extracted are guessed in number and length.
    """
    written = criteria.filter(pc.fill_null(pc.not_equal(criteria["source"], EXTRACTED), True))
    if model is None:
        return written
    known = set(written["prompt"].to_pylist())
    rows = []
    for prompt in prompts.select(["blueprint", "prompt", "messages", "ideal"]).to_pylist():
        if prompt["prompt"] not in known and (prompt["ideal"] or "").strip():
            rows += _planned_points(prompt, model, ledger)
    return pa.concat_tables([written, pa.Table.from_pylist(rows, schema=RUBRIC_CRITERIA)])


def _planned_points(prompt: Mapping[str, Any], model: ModelSpec, ledger: CallLedger) -> list[dict[str, Any]]:
    turns = tuple(Turn(message["role"], message["text"]) for message in prompt["messages"])
    first = extraction_request(turns, prompt["ideal"], model)
    points = _replayed(first, ledger)
    if points is None:
        # Of each prompt other ones, so that no two judgements are taken for one.
        points = tuple(f"{_USUAL_POINT}{at} {first.key}" for at in range(USUAL_POINTS))
    place = {"blueprint": prompt["blueprint"], "prompt": prompt["prompt"]}
    return [
        {**place, "block": one.block, "position": one.position, "criterion_id": criterion_id(one)}
        | {"kind": one.kind, "text": one.text, "weight": one.weight, "source": one.source}
        for one in point_criteria(points)
    ]


def _replayed(first: Request, ledger: CallLedger) -> tuple[str, ...] | None:
    """The points by the replies that are stored; None: the model would be asked, which is entered into the ledger."""
    row = ledger.row(ANALYST_ROLE, first.model.model_copy(update={"name": first.model.name + FOR_KEY_POINTS}))
    row.planned += 1
    texts: list[str] = []
    request: Request | None = first
    while request is not None:
        (is_new,) = ledger.new([request.key])
        row.requests += is_new
        stored = ledger.stored.texts([request.key])
        if request.key not in stored:
            if is_new:
                tokens = sum(tokens_of(message.text) for message in request.messages)
                most = max(float(EXTRACTION_TOKENS), most_tokens(request.model))
                row.send(1, tokens, _USUAL_REPLY_TOKENS, most)
                if not texts:
                    row.once_more(1, tokens + most, most)
            return None
        row.replayed += is_new
        texts.append(stored[request.key])
        request = further_extraction(first, texts)
    return read_points(texts[-1]).points
