"""The percentages of a question: the effect of rounding on their sum, fractions of 1, and questions with several answers per person."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.model import Finding, Survey, Unreadable
from dtef_pipeline.text.shortening import shorten_to_line

Percentages = Sequence[float | Unreadable | None]

SUM_TOLERANCE = 1.0
"""Percentages that are rounded finely may sum to 99 .. 101, too: published files add up no better."""

MULTI_SELECT = "multi-select-question"
_FINEST_UNIT_DECIMALS = 3
_CHOOSING_VERBS = r"(?:select|choose|check|mark|tick|pick|name|list|mention|indicate|circle)"
_SMALL_NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|[2-9]|10)"
_SEVERAL_ANSWERS = re.compile(
    rf"""
    (?:^|[.?!:;,(\[*/–—-]|\bplease|\byou\s+(?:can|may|could|should)|\band)\s*{_CHOOSING_VERBS}\s+(?:
        (?:any\s+and\s+)?all\s+(?:of\s+)?(?:that|which|those|the\s+(?:\w+\s+)?(?:that|which)|answers|options|responses)
        |(?:up\s+to|at\s+most|no\s+more\s+than|a\s+maximum\s+of|exactly|(?:the|your)\s+(?:top|main)?)\s*{_SMALL_NUMBER}\b
        |as\s+many\b|one\s+or\s+more\b|more\s+than\s+one\b|several\b|multiple\b|any\s+that\b|{_SMALL_NUMBER}\b(?!\s*(?:if|for|when|to|means|as|=|–|-)))
    |\ball\s+that\s+appl(?:y|ies)\b
    |\b(?:multiple|several)\s+(?:answers|responses|selections|mentions)\b
    |\bmore\s+than\s+one\s+(?:answer|response)\b
    |\b(?:up\s+to|at\s+most|max(?:imum)?\.?)\s+{_SMALL_NUMBER}\s+(?:answers|responses|options|choices)\b
    |[(\[]\s*(?:up\s+to|max(?:imum)?\.?)\s*{_SMALL_NUMBER}\s*[)\]]
    |\bmulti(?:ple)?[-\s]?(?:select|response|punch)\b
    |\bmehrfach(?:nennung|auswahl|antwort)|\bplusieurs\s+réponses|\bvarias\s+(?:respuestas|opciones)|\brespuestas?\s+múltiples?
    |\bvárias\s+respostas|多选|複数回答|可多選
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_CHOSEN = re.compile(
    r"(?:not|un)[\s-]?(?:mentioned|selected|chosen|checked|marked|ticked|picked|named|listed)", re.IGNORECASE
)
_DROPPED = (
    "These questions are left out, because their shares are not a distribution: respondents could choose several answers, or a segment's "
    "percentages sum to more than rounding explains"
)
_FRACTIONS = "All cells are from 0 to 1 and most pairs sum to 1, so the cells were read as fractions and multiplied by 100."


def sum_tolerance(distributions: Iterable[Percentages]) -> float:
    """Return how far from 100 a question's percentages may sum: half a rounding unit for each option, and at least SUM_TOLERANCE.

    The unit is that of the cell with most decimals: 6 whole percentages may sum to 97 .. 103.
    """
    numbers = [[p for p in shares if isinstance(p, float | int) and math.isfinite(p)] for shares in distributions]
    decimals = max((_count_decimals(p) for shares in numbers for p in shares), default=_FINEST_UNIT_DECIMALS)
    return max(SUM_TOLERANCE, max(map(len, numbers), default=0) * 10.0**-decimals / 2)


def _count_decimals(value: float) -> int:
    return next(
        (d for d in range(_FINEST_UNIT_DECIMALS) if abs(value * 10**d - round(value * 10**d)) < 1e-6), _FINEST_UNIT_DECIMALS
    )


def is_fractions(shares: Percentages) -> bool:
    """Return whether the cells are from 0 to 1 and sum to 1, except for rounding."""
    if not is_readable(shares):
        return False
    percent = [round(100 * p, 9) for p in _list_numbers(shares)]
    return max(percent) <= 100 and abs(sum(percent) - 100) <= sum_tolerance([percent])


def is_readable(shares: Percentages) -> bool:
    """Return whether every cell is a number of 0 or more."""
    return bool(shares) and len(_list_numbers(shares)) == len(shares) and all(p >= 0 for p in _list_numbers(shares))


def _list_numbers(shares: Percentages) -> list[float]:
    return [p for p in shares if isinstance(p, float | int) and math.isfinite(p)]


def convert_to_percent(survey: Survey) -> Survey:
    """Return the survey with cells times 100 if none is above 1 and most pairs sum to 1, which percentages never do."""
    rows = [a.percentages for a in survey.answers if any(_list_numbers(a.percentages))]
    if any(max(_list_numbers(shares)) > 1 for shares in rows) or 2 * sum(map(is_fractions, rows)) <= len(rows):
        return survey
    answers = [
        replace(a, percentages=tuple(round(100 * p, 9) if isinstance(p, float | int) else p for p in a.percentages))
        for a in survey.answers
    ]
    return replace(survey, answers=tuple(answers), findings=(*survey.findings, Finding("warning", "fractions", _FRACTIONS)))


def has_several_answers(text: str, options: Iterable[str] = ()) -> bool:
    """Return whether the text of a question asks for several answers: select all that apply, choose up to three.

    False if its `options` are about one item only: mentioned or not mentioned, yes or no.
    """
    names = {option.strip().casefold() for option in options}
    is_of_one_item = names >= {"yes", "no"} or any(map(_NOT_CHOSEN.fullmatch, names))
    return _SEVERAL_ANSWERS.search(text) is not None and not is_of_one_item


def remove_multi_select(survey: Survey) -> Survey:
    """Return the survey without questions with several answers per person, which a finding lists. Raises SurveyError if no question is
    left.

    The criterion is the text, or one segment above 100 that rounding does not explain. A cell above 100 is another fault and proves
    nothing.
    """
    shares: dict[str, list[Percentages]] = defaultdict(list)
    places: dict[tuple[str, int], str] = {}
    for a in survey.answers:
        if is_readable(a.percentages):
            places[a.question_id, len(shares[a.question_id])] = a.segment
            shares[a.question_id].append(a.percentages)
    reasons = {q.id: "its text says so" for q in survey.questions if has_several_answers(q.text, q.options)}
    for question_id, question_shares in shares.items():
        for place, total in _find_above_100(question_shares):
            reasons.setdefault(question_id, f"{places[question_id, place]}: {total:.6g} %")
    if not reasons:
        return survey
    items = tuple(f"{shorten_to_line(q.text)} ({reasons[q.id]})" for q in survey.questions if q.id in reasons)
    if len(items) == len(survey.questions):
        requirement = "at least one question with a single answer per person"
        finding_text = ". ".join([_DROPPED, *(f.message for f in survey.findings if f.level == "warning" and f.items)])
        raise SurveyError(
            f"no question is left to predict. {finding_text}", where=survey.path, arrived=items[0], allowed=requirement
        )
    return replace(
        survey,
        questions=tuple(q for q in survey.questions if q.id not in reasons),
        answers=tuple(a for a in survey.answers if a.question_id not in reasons),
        findings=(*survey.findings, Finding("warning", MULTI_SELECT, _DROPPED, items)),
    )


def _find_above_100(question_shares: Sequence[Percentages]) -> Iterator[tuple[int, float]]:
    """Yield (place, sum) of answers whose sum rounding does not explain."""
    limit = 100 + sum_tolerance(question_shares) + 1e-9
    for place, shares in enumerate(question_shares):
        numbers = _list_numbers(shares)
        if sum(numbers) > limit and max(numbers) <= 100:
            yield place, sum(numbers)
