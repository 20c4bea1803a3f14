"""One judgement: the request, one further request after an unreadable reply, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.judging.consensus import FIVE_CLASSES, ClassScale
from dtef_pipeline.judging.judges import JudgeConfig, replace_sampling
from dtef_pipeline.judging.prompts import Case, build_correction, judge_messages
from dtef_pipeline.judging.replies import DECLINED, JudgeReply, read_reply

JUDGE_ROLE = "judge"
USUAL_JUDGEMENT_TOKENS = 120
"""Default estimate of a judgement's tokens for a judge without earlier ones: one or two sentences and a class."""
CUT_SHORT, CALL_FAILED, OVER_BUDGET = "cut", "error", "budget"
_LENGTH, _FILTERED = "length", "content_filter"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one case by one judge in one draw."""

    name: str | None
    """The class; None: there is none, see `reason`."""
    score: float | None
    """The number of the class, 0 to 1: how far the criterion is met, before should_not is inverted."""
    reflection: str | None
    """The judge's explanation in the reply that counts."""
    reason: str | None
    """Why there is no class: the last reply was unreadable, cut (by the token limit), empty or declined to judge; error: a call failed; budget:
    a budget was reached. A rerun repeats requests for the last two reasons. None: there is a class.
    """
    attempts: int
    """Number of requests, 1 or 2; 0: none was sent."""
    raws: tuple[str, ...]
    """The replies, unchanged, in order."""
    request_keys: tuple[str, ...]
    """Keys of all requests, including failed ones."""


def build_first_request(case: Case, judge: JudgeConfig, draw: int, snapshot: str) -> Request:
    """Build the request that shows a case to a judge, in the snapshot of the judged response."""
    messages = judge_messages(judge.approach, case, judge.scale)
    return Request.build_request(messages, judge.model, draw, snapshot, role=JUDGE_ROLE)


def build_next_request(first: Request, responses: Sequence[Response], scale: ClassScale = FIVE_CLASSES) -> Request | None:
    """Return the further request of a judgement, given the responses so far, or None if none is needed.

    An unreadable reply is shown to its judge once, with a correction. After a cut reply the judge has twice the tokens.
    """
    if len(responses) != 1 or _read(responses[0], scale).name is not None:
        return None
    (response,) = responses
    model = _double_max_tokens(first.model) if response.finish_reason == _LENGTH else first.model
    messages = build_correction(first.messages, response.text, scale)
    return Request.build_request(messages, model, first.draw, first.snapshot, role=JUDGE_ROLE)


def resolve_judgement(outcomes: Sequence[Response | Failure], scale: ClassScale = FIVE_CLASSES) -> Judgement:
    """Return the judgement that results from the outcomes of its requests, in order. The last one decides; without any it is an `error`."""
    responses = [outcome for outcome in outcomes if isinstance(outcome, Response)]
    last = outcomes[-1] if outcomes else None
    reply = _read(last, scale) if isinstance(last, Response) else JudgeReply(None, last.status if last else CALL_FAILED, None)
    return Judgement(
        name=reply.name,
        score=None if reply.name is None else scale.numbers[reply.name],
        reflection=reply.reflection,
        reason=reply.reason,
        attempts=len(outcomes),
        raws=tuple(response.text for response in responses),
        request_keys=tuple(outcome.request_key for outcome in outcomes),
    )


def _read(response: Response, scale: ClassScale) -> JudgeReply:
    """Read the reply, with reasons known only from the provider. A bare name in a cut reply may be a passing thought: no verdict."""
    reply = _read_last_reply(response.text, scale)
    cut = response.finish_reason == _LENGTH
    if reply.name is not None and (reply.is_tagged or not cut):
        return reply
    reason = CUT_SHORT if cut else DECLINED if response.finish_reason == _FILTERED else reply.reason
    return JudgeReply(None, reason, reply.reflection)


# A reply is read when it arrives, to decide on the next request, and again when its judgement is built.
@lru_cache(maxsize=8_192)
def _read_last_reply(text: str, scale: ClassScale) -> JudgeReply:
    return read_reply(text, scale)


@lru_cache(maxsize=256)
def _double_max_tokens(model: ModelSpec) -> ModelSpec:
    return model if model.max_tokens is None else replace_sampling(model, {"max_tokens": 2 * model.max_tokens})
