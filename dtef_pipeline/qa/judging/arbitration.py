"""One judgement of the arbiter: its request, one more after an unreadable reply, and the score of an answer from its judgements."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import LAST_ERROR, Request, Response
from dtef_pipeline.judging.judgement import CALL_FAILED, CUT_SHORT, EMPTY, JUDGE_ROLE, OVER_BUDGET, UNREADABLE
from dtef_pipeline.judging.judges import is_self_judged, replace_sampling
from dtef_pipeline.qa.judging.arbiter import (
    ARBITER_REPLY_SCHEMA,
    JUDGE_SNAPSHOT,
    Arbiter,
    build_arbiter_messages,
    prepare_answer_for_judge,
)
from dtef_pipeline.qa.model import OK_STATUS, UNPARSEABLE_STATUS, ItemScore
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

SKIPPED_BUDGET, SKIPPED_SAMPLE, JUDGE_FAILED = "skipped_budget", "skipped_sample", "judge_failed"
PARTIAL_FLAG, SELF_JUDGED = "partial", "self_judged"


@dataclass(slots=True)
class Arbitration:
    """One judgement by one evaluator, an episode of requests."""

    evaluator: str
    question: str
    reference: str
    answer: str
    judge: ModelSpec
    snapshot: str = JUDGE_SNAPSHOT
    """`judge`, or a value of `judge_snapshot`."""
    _first_request: Request | None = None

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the first request, or after an unreadable reply the same request as another draw (with twice the room
        if the reply was cut off), or None at the end."""
        if self._first_request is None:
            self._first_request = self._build_judge_request(self.judge, 0)
        if not history:
            return self._first_request
        if len(history) > 1 or _read(history[0]).score is not None:
            return None
        judge = self.judge
        if _is_cut(history[0]) and judge.max_tokens is not None:
            judge = replace_sampling(judge, {"max_tokens": 2 * judge.max_tokens})
        return self._build_judge_request(judge, 1)

    def _build_judge_request(self, judge: ModelSpec, draw: int) -> Request:
        messages = build_arbiter_messages(self.evaluator, self.question, self.reference, self.answer)
        return Request.build_request(
            messages, judge, draw, self.snapshot, role=JUDGE_ROLE, response_schema=ARBITER_REPLY_SCHEMA
        )


def iterate_arbitrations(
    question: str,
    reference: str,
    answer: str,
    arbiter: Arbiter,
    snapshot: str = JUDGE_SNAPSHOT,
    evaluators: Sequence[str] = (),
) -> Iterator[Arbitration]:
    """Yield the judgements of one answer, one per evaluator; none for an answer that is blank apart from thinking: BLANK_ANSWER.

    `evaluators`: replace the arbiter's own unless empty.
    """
    if not prepare_answer_for_judge(answer):
        return
    for evaluator in evaluators or arbiter.evaluators:
        yield Arbitration(evaluator, question, reference, answer, arbiter.model, snapshot)


def make_verdict_row(
    task: Arbitration, result: EpisodeResult, judged_model: str, own_servers: Collection[str] = ()
) -> dict[str, Any]:
    """Return the columns of `qa_judgements` that a judgement fills, from its last reply. `judged_model`: model string or variant of the
    judged model; `own_servers`: see `is_self_judged`."""
    failure = result.failure
    reply = ArbiterReply(None, CALL_FAILED)
    error: str | None = failure.message if failure else "was not sent"
    if failure is not None and failure.status == OVER_BUDGET:
        reply = ArbiterReply(None, SKIPPED_BUDGET)
    elif failure is None and result.responses:
        reply, error = _read(result.responses[-1]), None
        if reply.score is None and _is_cut(result.responses[-1]):
            reply = replace(reply, reason=CUT_SHORT)
    costs = [response.cost_usd for response in result.responses if response.cost_usd is not None]
    return {
        "evaluator": task.evaluator,
        "judge_model": task.judge.name,
        "judge_variant": task.judge.variant,
        "score": reply.score,
        "reason": reply.reason,
        "explanation": reply.explanation,
        "attempts": len(result.outcomes) - (reply.reason == SKIPPED_BUDGET),
        "raw": [response.text for response in result.responses],
        "request_keys": [outcome.request_key for outcome in result.outcomes],
        "prompt_tokens": _sum([response.prompt_tokens for response in result.responses]),
        "completion_tokens": _sum([response.completion_tokens for response in result.responses]),
        "cost_usd": fsum(costs) if costs and len(costs) == len(result.responses) else None,
        "error": error,
        "self_judged": is_self_judged(task.judge.model, judged_model, own_servers),
    }


def compute_arbiter_score(
    scores: Mapping[str, float | None],
    reasons: Mapping[str, str | None] | None = None,
    *,
    self_judged: bool = False,
    errors: Mapping[str, str | None] | None = None,
) -> ItemScore:
    """Return the mean of the evaluators' scores of one answer, 0-1; flagged `partial` if an evaluator gave no score.

    Without any score the result is null: `skipped_budget` if a budget stopped every evaluator, else `judge_failed`. `reasons`: by
    evaluator, why it gave no score. `errors`: by evaluator, the budget that stopped it.
    """
    missing = {name: (reasons or {}).get(name) or "no score" for name, score in scores.items() if score is None}
    numbers = [score for score in scores.values() if score is not None]
    flags = (*([PARTIAL_FLAG] if numbers and missing else []), *([SELF_JUDGED] if self_judged else []))
    details = {"judges": dict(scores)}
    explanations = "; ".join(f"{name}: {reason}" for name, reason in missing.items()) or None
    if numbers:
        return ItemScore(OK_STATUS, fsum(numbers) / len(numbers), JUDGE_SNAPSHOT, flags, details, explanations)
    if missing and all(reason == SKIPPED_BUDGET for reason in missing.values()):
        limits = [error for name in missing if (error := (errors or {}).get(name))]
        # The reason of an evaluator whose call failed before the budget ended shows what the budget was spent on.
        limit = max(limits, key=lambda error: LAST_ERROR in error, default=None)
        return ItemScore(SKIPPED_BUDGET, None, None, flags, details, describe_over_budget(limit))
    return ItemScore(JUDGE_FAILED, None, None, flags, details, explanations or "no evaluator was used")


def describe_over_budget(limit: str | None) -> str:
    """Describe why an answer was not judged and how to continue. `limit`: the error that names the budget."""
    return (
        f"{limit or 'a budget was reached'}; run the same command again to continue, for a daily budget on the next day (UTC)"
    )


BLANK_ANSWER = ItemScore(UNPARSEABLE_STATUS, reason="the response is empty")
"""Score of a blank answer, which needs no judge."""
NOT_IN_SAMPLE = ItemScore(SKIPPED_SAMPLE, reason="the answer is not in the sample that is judged (sample_rate)")
"""Score of an answer that `is_in_sample` leaves out."""


def _read(response: Response) -> ArbiterReply:
    return read_arbiter_reply(response.text)


def _is_cut(response: Response) -> bool:
    return response.finish_reason == "length"


def _sum(numbers: Sequence[int | None]) -> int | None:
    counts = [number for number in numbers if number is not None]
    return sum(counts) if counts else None


LONGEST_REASON = 4_000
"""Characters of a judge's reason that are kept; the response store has the whole reply."""
_OPENS_AN_OBJECT = re.compile(r'\{\s*+"')


@dataclass(frozen=True, slots=True)
class ArbiterReply:
    """The content of one reply."""

    score: float | None
    """0 to 1, higher is better; None: no score, see the reason."""
    reason: str | None
    """Why there is no score: unreadable or empty; None: there is one."""
    explanation: str | None = None
    """The judge's reason; None: it gave no reason."""


def read_arbiter_reply(text: str) -> ArbiterReply:
    """Return the score of the last JSON object whose key `score` is a number from 0 to 1.

    Thinking is dropped first. A number outside 0-1, as text or in prose, true, NaN, and a doubled key are not scores. A broken JSON object
    makes the whole reply unreadable, because an object that follows may be a quotation inside it. Accepts any text, in time linear in its
    length.
    """
    content = strip_thinking(text).strip()
    if not content:
        return ArbiterReply(None, EMPTY)
    reply: ArbiterReply | None = None
    place = 0
    while (opening := _OPENS_AN_OBJECT.search(content, place)) is not None:
        try:
            value, place = _DECODER.raw_decode(content, opening.start())
        except (ValueError, RecursionError):
            return ArbiterReply(None, UNREADABLE)
        reply = _read_score(value) or reply
    return reply or ArbiterReply(None, UNREADABLE)


def _read_score(value: Any) -> ArbiterReply | None:
    score = value.get("score") if isinstance(value, dict) else None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    reason = value.get("reason")
    explanation = replace_surrogates(reason)[:LONGEST_REASON].strip() if isinstance(reason, str) else ""
    return ArbiterReply(abs(float(score)), None, explanation or None)


def _reject_doubled_score(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object, without its score if it has several."""
    mapping = dict(pairs)
    if sum(name == "score" for name, _ in pairs) > 1:
        del mapping["score"]
    return mapping


def _reject_constant(name: str) -> None:
    """Reject NaN and infinities, which JSON does not have."""


_DECODER = json.JSONDecoder(object_pairs_hook=_reject_doubled_score, strict=False, parse_constant=_reject_constant)
