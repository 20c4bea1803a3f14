"""One judgement of the arbiter: the request, the one further request after a reply that cannot be read, and what judgements come to."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import LAST_ERROR, Failure, Request, Response
from dtef_pipeline.judging.judgement import CALL_FAILED, CUT_SHORT, JUDGE_ROLE, OVER_BUDGET
from dtef_pipeline.judging.judges import is_self_judged, replace_sampling
from dtef_pipeline.judging.replies import EMPTY, UNREADABLE
from dtef_pipeline.qa.judging.arbiter import JUDGE_SNAPSHOT, Arbiter
from dtef_pipeline.qa.judging.arbiter_prompts import ARBITER_REPLY_SCHEMA, build_arbiter_messages, prepare_answer_for_judge
from dtef_pipeline.qa.model import OK_STATUS, UNPARSEABLE_STATUS, ItemScore
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

SKIPPED_BUDGET, SKIPPED_SAMPLE, JUDGE_FAILED = "skipped_budget", "skipped_sample", "judge_failed"
PARTIAL_FLAG, SELF_JUDGED = "partial", "self_judged"


@dataclass(slots=True)
class Arbitration:
    """One judgement to be had, by one evaluator: an episode."""

    evaluator: str
    question: str
    reference: str
    answer: str
    judge: ModelSpec
    snapshot: str = JUDGE_SNAPSHOT
    """`judge`, or that of `judge_snapshot`."""
    _first: Request | None = None

    def next(self, history: Sequence[Response]) -> Request | None:
        """The first request; then, after a reply that cannot be read, once more the same as another draw; None: it is over."""
        if self._first is None:
            self._first = self._build_judge_request(self.judge, 0)
        if not history:
            return self._first
        if len(history) > 1 or _read(history[0]).score is not None:
            return None
        return self._build_judge_request(_double_room(self.judge) if _is_cut(history[0]) else self.judge, 1)

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
    """The judgements of one answer, one for each evaluator; none where it is blank but for thinking, which needs no judge: BLANK_ANSWER.

    `evaluators`: in place of the arbiter's, where there are any.
    """
    if not prepare_answer_for_judge(answer):
        return
    for evaluator in evaluators or arbiter.evaluators:
        yield Arbitration(evaluator, question, reference, answer, arbiter.model, snapshot)


@dataclass(frozen=True, slots=True)
class EvaluatorVerdict:
    """What an evaluator said of an answer."""

    evaluator: str
    score: float | None
    """0 to 1: higher is better; None: there is none, for the reason given."""
    reason: str | None
    """unreadable | empty | cut | error | skipped_budget; None: there is a score."""
    explanation: str | None
    """The judge's own reason."""
    error: str | None
    """Why there is no reply; None: there is one."""


def read_verdict(task: Arbitration, result: Played) -> EvaluatorVerdict:
    """What came of a judgement: its last reply decides."""
    if result.failure is not None or not result.responses:
        budget = result.failure is not None and result.failure.status == OVER_BUDGET
        error = result.failure.message if result.failure else "was not asked"
        return EvaluatorVerdict(task.evaluator, None, SKIPPED_BUDGET if budget else CALL_FAILED, None, error)
    last = result.responses[-1]
    reply = _read(last)
    reason = CUT_SHORT if reply.score is None and _is_cut(last) else reply.reason
    return EvaluatorVerdict(task.evaluator, reply.score, reason, reply.explanation, None)


def make_verdict_row(task: Arbitration, result: Played, judged_model: str, own_servers: Collection[str] = ()) -> dict[str, Any]:
    """The columns of `qa_judgements` that the judgement fills; `judged_model`: model string or variant of who answered; `own_servers`: as of
    `is_self_judged`."""
    verdict = read_verdict(task, result)
    outcomes: list[Response | Failure] = [*result.responses, *([result.failure] if result.failure else [])]
    costs = [response.cost_usd for response in result.responses if response.cost_usd is not None]
    return {
        "evaluator": task.evaluator,
        "judge_model": task.judge.name,
        "judge_variant": task.judge.variant,
        "score": verdict.score,
        "reason": verdict.reason,
        "explanation": verdict.explanation,
        "attempts": len(outcomes) - (verdict.reason == SKIPPED_BUDGET),
        "raw": [response.text for response in result.responses],
        "request_keys": [outcome.request_key for outcome in outcomes],
        "prompt_tokens": _sum([response.prompt_tokens for response in result.responses]),
        "completion_tokens": _sum([response.completion_tokens for response in result.responses]),
        "cost_usd": fsum(costs) if costs and len(costs) == len(result.responses) else None,
        "error": verdict.error,
        "self_judged": is_self_judged(task.judge.model, judged_model, own_servers),
    }


def compute_arbiter_score(
    scores: Mapping[str, float | None],
    reasons: Mapping[str, str | None] | None = None,
    *,
    self_judged: bool = False,
    errors: Mapping[str, str | None] | None = None,
) -> ItemScore:
    """What the judgements of one answer come to, by evaluator: the mean of those that gave a score, 0-1, `partial` where one is missing.

    Without any the score is null, never a middle value: `skipped_budget` where a budget kept every evaluator from being asked, else
    `judge_failed`. `reasons`: why an evaluator gave none. `errors`: by evaluator, which budget kept it from being asked.
    """
    why = {name: (reasons or {}).get(name) or "no score" for name, score in scores.items() if score is None}
    numbers = [score for score in scores.values() if score is not None]
    flags = (*([PARTIAL_FLAG] if numbers and why else []), *([SELF_JUDGED] if self_judged else []))
    details = {"judges": dict(scores)}
    explanations = "; ".join(f"{name}: {reason}" for name, reason in why.items()) or None
    if numbers:
        return ItemScore(OK_STATUS, fsum(numbers) / len(numbers), JUDGE_SNAPSHOT, flags, details, explanations)
    if why and all(reason == SKIPPED_BUDGET for reason in why.values()):
        limits = [error for name in why if (error := (errors or {}).get(name))]
        # That of an evaluator whose call failed before the budget ended says what it was spent on.
        limit = max(limits, key=lambda error: LAST_ERROR in error, default=None)
        return ItemScore(SKIPPED_BUDGET, None, None, flags, details, describe_over_budget(limit))
    return ItemScore(JUDGE_FAILED, None, None, flags, details, explanations or "no evaluator was asked")


def describe_over_budget(limit: str | None) -> str:
    """Why an answer was not judged, and how it is. `limit`: the error that names the budget."""
    return f"{limit or 'a budget was reached'}; the same command goes on, where the budget is that of a day from the next day (UTC)"


BLANK_ANSWER = ItemScore(UNPARSEABLE_STATUS, reason="the response is empty")
"""The score of an answer that has nothing to judge."""
NOT_IN_SAMPLE = ItemScore(SKIPPED_SAMPLE, reason="the answer is not in the sample that is judged (sample_rate)")
"""The score of an answer that is left out by `is_in_sample`."""


def _read(response: Response) -> ArbiterReply:
    return read_arbiter_reply(response.text)


def _is_cut(response: Response) -> bool:
    return response.finish_reason == "length"


def _double_room(judge: ModelSpec) -> ModelSpec:
    """The judge with twice the tokens, after a reply that its limit cut."""
    return judge if judge.max_tokens is None else replace_sampling(judge, {"max_tokens": 2 * judge.max_tokens})


def _sum(numbers: Sequence[int | None]) -> int | None:
    counts = [number for number in numbers if number is not None]
    return sum(counts) if counts else None


LONGEST_REASON = 4_000
"""Characters of a judge's reason that are kept; the reply is stored whole."""
_OPENS_AN_OBJECT = re.compile(r'\{\s*+"')


@dataclass(frozen=True, slots=True)
class ArbiterReply:
    """What one reply says."""

    score: float | None
    """0 to 1: higher is better; None: there is none, for the reason given."""
    reason: str | None
    """unreadable | empty; None: there is a score."""
    explanation: str | None = None
    """What the judge gave as its reason; None: it gave none."""


def read_arbiter_reply(text: str) -> ArbiterReply:
    """The score of the last JSON object with a key `score` that is a number from 0 to 1.

    Thinking is dropped first. A number out of 0-1, as text, true, NaN, given twice, and one in prose are no scores. An object that begins and
    is not JSON makes the whole reply unreadable: what looks like an object behind its beginning may be a quotation in it. Takes any text, in
    time linear in its length.
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
    """The object, without a score where it names several."""
    mapping = dict(pairs)
    if sum(name == "score" for name, _ in pairs) > 1:
        del mapping["score"]
    return mapping


def _reject_constant(name: str) -> None:
    """NaN and infinities, which JSON does not have."""


_DECODER = json.JSONDecoder(object_pairs_hook=_reject_doubled_score, strict=False, parse_constant=_reject_constant)
