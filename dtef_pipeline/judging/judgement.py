"""One judgement: the request, the reading of replies, one further request after an unreadable one, and the result."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.judging.consensus import FIVE_CLASSES, ClassScale
from dtef_pipeline.judging.judges import JudgeConfig, replace_sampling
from dtef_pipeline.judging.prompts import INVISIBLE, Case, build_correction, judge_messages
from dtef_pipeline.text.plain import strip_thinking

UNREADABLE, EMPTY, DECLINED = "unreadable", "empty", "declined"

_INVISIBLE_CHARACTER = re.compile(f"[{INVISIBLE}]")
_REPLY_TAG = r"<\s*+(/?)\s*+{}\s*+>"
_CLASSIFICATION = re.compile(_REPLY_TAG.format("classification"), re.IGNORECASE)
_REFLECTION = re.compile(_REPLY_TAG.format("reflection"), re.IGNORECASE)
_CLASS_NAME = re.compile(r"(?<![A-Za-z0-9])CLASS(?:_[A-Z0-9]+)+", re.IGNORECASE)
_MARKS_AROUND_NAME = string.whitespace + "\u00a0\u3000\"'`´*._“”„‟‘’‚‛«»‹›"
_DECLINES = re.compile(
    r"(?:i['’]?m (?:really |very |so )?sorry|(?:my )?apologies|i apologi[sz]e|sorry"
    r"|i (?:cannot|can['’]?t|can not|will not|won['’]?t|must decline|decline|refuse|am unable|am not able|am not comfortable)"
    r"|i['’]m (?:unable|not able|not comfortable)|as an ai\b|unfortunately,? i)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """The content of a judge's reply: a class, or the reason why none can be read."""

    name: str | None
    """A name of the scale."""
    reason: str | None
    """unreadable | empty | declined; None: there is a class."""
    reflection: str | None
    """The judge's explanation; None: it gave none."""
    is_tagged: bool = False
    """Whether the class was in its tags. A bare name counts only if the reply is complete."""


def read_reply(text: str, scale: ClassScale = FIVE_CLASSES) -> JudgeReply:
    """Read the class that the `<classification>` tags name, or the only class that a reply without such tags names.

    Thinking and invisible characters are dropped first. Tags may be in upper or lower case. White space, quotes, asterisks, backticks and
    dots around the name are ignored, and `CLASS_` may be missing. Nothing is guessed: unmatched tags, a name not on the scale, and several
    different names, in tags or bare, are unreadable.
    """
    reply = strip_thinking(text if text.isascii() else _INVISIBLE_CHARACTER.sub("", text)).replace("\\_", "_").strip()
    if not reply:
        return JudgeReply(None, EMPTY, None)
    tags = list(_CLASSIFICATION.finditer(reply))
    if tags:
        name = _read_tagged_class(reply, tags, scale)
    else:
        named = {bare.upper() for bare in _CLASS_NAME.findall(reply)} & scale.numbers.keys()
        name = named.pop() if len(named) == 1 else None
    reflection = _extract_reflection(reply, tags)
    if name is not None:
        return JudgeReply(name, None, reflection, bool(tags))
    is_declined = not tags and _DECLINES.match((reflection or "").lstrip(_MARKS_AROUND_NAME))
    return JudgeReply(None, DECLINED if is_declined else UNREADABLE, reflection)


def _read_tagged_class(text: str, tags: list[re.Match[str]], scale: ClassScale) -> str | None:
    """Return the name in the tags if they are paired, opening first, and all pairs have the same name."""
    opening, closing = tags[::2], tags[1::2]
    if len(opening) != len(closing) or any(tag[1] for tag in opening) or not all(tag[1] for tag in closing):
        return None
    pairs = zip(opening, closing, strict=True)
    inside = (text[first.end() : last.start()].strip(_MARKS_AROUND_NAME).upper() for first, last in pairs)
    named = {f"CLASS_{name.removeprefix('CLASS_')}" for name in inside}
    name = named.pop()
    return name if not named and name in scale.numbers else None


def _extract_reflection(text: str, tags: list[re.Match[str]]) -> str | None:
    """Return the content of the reflection's tags or, without them, the text before the classification."""
    matches = list(_REFLECTION.finditer(text))
    start = next((tag.end() for tag in matches if not tag[1]), 0)
    ends = [tag.start() for tag in matches if tag[1] and tag.start() >= start]
    after = [tag.start() for tag in tags if tag.start() >= start]
    end = ends[-1] if ends else after[0] if after else len(text)
    return text[start:end].strip() or None


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
