"""Yes/No questions: the first word decides.

With Rationale, a right answer gets a share of the score and its reasons the rest; a wrong answer gets 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dtef_pipeline.qa.metric import METRIC_PLACE, MetricValue, normalise, parse_metric, parse_metric_json, read_metric_values
from dtef_pipeline.qa.model import OK_STATUS, ItemError, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.socioscope.lists import (
    AMBIGUOUS,
    UNPARSED,
    Coverage,
    clip_to_0_1,
    make_unscorable,
    score_unreadable,
    split_listed_words,
)
from dtef_pipeline.qa.socioscope.words import extract_folded_answer
from dtef_pipeline.qa.transcripts.citation_reply import read_cited

YES_WORDS = ("yes", "y", "yeah", "yep", "yup", "true", "correct", "affirmative")
NO_WORDS = ("no", "n", "nope", "nah", "false", "incorrect", "negative")
_SAYS = {**dict.fromkeys(YES_WORDS, True), **dict.fromkeys(NO_WORDS, False)}
_FIRST_WORD = re.compile(r"[^a-z0-9]*([a-z0-9']+)")
_SECOND_WORD = re.compile(r"(?P<gap>[^a-z0-9]*(?:\b(?:and|or)\b[^a-z0-9]*)?)(?P<word>[a-z0-9']+)(?P<goes_on>[ \t]+[a-z0-9])?")
_NOT_APPLICABLE = re.compile(r"[^a-z0-9]*n ?/ ?a\b")
_CLAUSE_END = re.compile(r"[,;:.!?\n]|\s-")


class YesOrNo(NamedTuple):
    """The yes or no at the beginning of an answer."""

    is_yes: bool | None
    """None: neither, or both."""
    flag: str | None
    """Why it is neither: `unparsed` or `ambiguous`."""
    end: int
    """End of the yes or no in the text."""


class YesNo:
    """A scorer: 1 for the expected answer, else 0."""

    name = "yes_no"
    version = 2

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; neither options nor settings matter."""
        expected = self.parse_expected(reference)
        if expected is None:
            return make_unscorable()
        right, wrong = ItemScore(OK_STATUS, 1.0, "first_word"), ItemScore(OK_STATUS, 0.0, "first_word")

        def score(response: WrittenResponse) -> ItemScore:
            read = self.read(extract_folded_answer(response.text))
            if read.is_yes is None:
                return score_unreadable(read.flag or UNPARSED)
            return right if read.is_yes == expected else wrong

        return score

    def parse_expected(self, reference: str) -> bool | None:
        """Return whether yes is expected, or None for an empty metric. Raises ItemError for any other metric."""
        values = parse_metric(reference)
        if not values:
            return None
        says = _SAYS.get(normalise(values[0].text)) if len(values) == 1 else None
        if says is None:
            raise ItemError("the expected answer is neither yes nor no", where=METRIC_PLACE, arrived=reference, allowed=_SAYS)
        return says

    def read(self, text: str) -> YesOrNo:
        """Read the beginning of a folded text: the first word decides, unless the opposite word follows it directly.

        In `Yes, no doubt` the second word begins its own clause and does not count.
        """
        first = _FIRST_WORD.match(text)
        says = _SAYS.get(first[1].replace("'", "")) if first else None
        if first is None or says is None or _NOT_APPLICABLE.match(text):
            return YesOrNo(None, UNPARSED, 0)
        second = _SECOND_WORD.match(text, first.end())
        opposite = second is not None and _SAYS.get(second["word"], says) != says
        if second is not None and opposite and not (second["goes_on"] and _CLAUSE_END.search(second["gap"])):
            return YesOrNo(None, AMBIGUOUS, 0)
        return YesOrNo(says, None, first.end())


RATIONALE_JUDGED = "judged"
"""Flag of a score that waits for a judge of the reasons, or includes such a judgement."""
USUAL_ANSWER_WEIGHT = 0.5
_RATIONALE_KEYS = ("answer", "rationale", "weight")
_RATIONALE_FORM = (
    '{"answer": "yes", "rationale": {"tide": 1}, "weight": 0.5}, with {"judge": true} for reasons that a judge reads'
)


@dataclass(frozen=True, slots=True)
class RationaleMetric:
    """The expected answer and reasons."""

    expects_yes: bool
    weight: float
    """Share of the score for a right answer without any reason, 0-1."""
    reasons: tuple[MetricValue, ...] | None
    """Values that the reasons may name; None: a judge reads the reasons."""


def read_rationale_metric(reference: str) -> RationaleMetric | None:
    """Read the metric of an item with reasons; None if empty, or without a weight above 0.

    Raises ItemError for a metric of another form or with invalid parts.
    """
    content = parse_metric_json(reference)
    if content is None or content == {}:
        return None
    if not isinstance(content, dict) or not {"answer", "rationale"} <= content.keys() <= set(_RATIONALE_KEYS):
        raise ItemError(
            "the metric does not fit an answer with reasons", where=METRIC_PLACE, arrived=reference, allowed=_RATIONALE_FORM
        )
    weight = content.get("weight", USUAL_ANSWER_WEIGHT)
    if type(weight) not in (int, float) or not 0 <= weight <= 1:
        raise ItemError("the weight is not between 0 and 1", where=METRIC_PLACE, arrived=weight, allowed="a number from 0 to 1")
    answer = content["answer"]
    expects_yes = YesNo().parse_expected(answer) if isinstance(answer, str) else None
    if expects_yes is None:
        raise ItemError("the expected answer is neither yes nor no", where=METRIC_PLACE, arrived=answer, allowed="yes, no")
    rationale = content["rationale"]
    is_judged = isinstance(rationale, dict) and rationale.keys() == {"judge"} and rationale["judge"] is True
    reasons = None if is_judged else read_metric_values(rationale)
    if reasons is not None and not any(value.weight > 0 for value in reasons):
        return None
    return RationaleMetric(expects_yes, float(weight), reasons)


class YesNoRationale:
    """A scorer: w b + (1 - w) b r, where b is 1 for the expected answer, r the share of the reasons that are named, w the metric's weight.

    A reply is text, or a JSON object with `answer` and `rationale`.
    """

    name = "yes_no_rationale"
    version = 3
    uses_lexicon = True

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; `options` do not matter.

        If a judge reads the reasons, a right answer has no value yet: its status is `missing` and its flag `judged`, and
        `add_judged_rationale` completes its score. A wrong answer scores 0 without a judge.
        """
        metric = read_rationale_metric(reference)
        if metric is None:
            return make_unscorable("the metric is empty, or no reason in it has a weight above 0")
        reader = YesNo()
        coverage = Coverage(metric.reasons, settings) if metric.reasons is not None else None

        def score(response: WrittenResponse) -> ItemScore:
            text = extract_folded_answer(read_cited(response.text).answer_with_reasons)
            read = reader.read(text)
            if read.is_yes is None:
                return score_unreadable(read.flag or UNPARSED, binary=None, rationale=None)
            is_right = read.is_yes == metric.expects_yes
            if coverage is None:
                return _score_without_judge(is_right, metric.weight)
            named = coverage.score(coverage.names.find_values(split_listed_words(text[read.end :]).words))
            result = _combine_rationale(is_right, named.value or 0.0, metric.weight)
            return replace(result, flags=named.flags, details={**result.details, "found": named.details["found"]})

        return score


def _combine_rationale(is_right: bool, rationale: float, weight: float) -> ItemScore:
    value = weight * is_right + (1 - weight) * is_right * rationale
    return ItemScore(
        OK_STATUS, value, "first_word", details={"binary": int(is_right), "rationale": rationale, "weight": weight}
    )


def _score_without_judge(is_right: bool, weight: float) -> ItemScore:
    details = {"binary": int(is_right), "rationale": None, "weight": weight}
    if not is_right:
        return ItemScore(OK_STATUS, 0.0, "first_word", details=details)
    return ItemScore("missing", None, "first_word", (RATIONALE_JUDGED,), details, "a judge reads the reasons")


def is_waiting_for_judge(score: ItemScore) -> bool:
    """Return whether a score is missing because the reasons are not judged yet."""
    return score.value is None and RATIONALE_JUDGED in score.flags


def add_judged_rationale(score: ItemScore, rationale: float | None, reason: str | None = None) -> ItemScore:
    """Return the score of an answer whose reasons were judged.

    Args:
        score: a score for which `is_waiting_for_judge` is true; any other is returned unchanged.
        rationale: the judge's score, 0-1; None: the judge failed, and the score stays without a value.
        reason: why the judge failed.
    """
    if not is_waiting_for_judge(score):
        return score
    if rationale is None:
        return replace(score, status="judge_failed", reason=reason)
    result = _combine_rationale(True, clip_to_0_1(rationale), score.details["weight"])
    return replace(result, flags=(RATIONALE_JUDGED,))
