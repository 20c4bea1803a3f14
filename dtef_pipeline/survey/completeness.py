"""The percentages of questions (rounding, fractions of 1, several answers per person), and the completeness of a survey: parts that are
missing although its files list them prevent reading, unless this is allowed.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.model import Finding, Survey, Unreadable
from dtef_pipeline.survey.validation import list_names, require_questions
from dtef_pipeline.text.number_words import format_count, list_first_names
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


MISSING_QUESTIONS, MISSING_ATTRIBUTES = "missing-questions", "missing-attributes"
ALLOWANCES = {MISSING_QUESTIONS: "--allow-missing-questions", MISSING_ATTRIBUTES: "--allow-missing-attributes"}
"""Codes of findings that stop a survey, with the option of `dtef add` that allows them."""

_NAMED_FIRST = 3
_WHAT_TO_DO = {
    MISSING_QUESTIONS: f"the file may be truncated: replace it, or continue without these with {ALLOWANCES[MISSING_QUESTIONS]}",
    MISSING_ATTRIBUTES: "the columns may have been renamed: restore their names, or continue without them with "
    f"{ALLOWANCES[MISSING_ATTRIBUTES]}",
}

_CUT = (
    f"In segments with most of the respondents the percentages of these questions sum to less than {100 - SUM_TOLERANCE:g} %, "
    "so options are missing"
)
_STORED_WITHOUT = "the round is stored without these segments"
NEXT_STEPS = {
    "lost-column": f"{_STORED_WITHOUT}: add their columns and ingest again",
    "no-counts-column": f"{_STORED_WITHOUT}: add their columns and ingest again",
    "unknown-column": f"{_STORED_WITHOUT}: name the columns as other rounds do, such as `O2: 26-35`, and ingest again; if the values are "
    "right and new, give the survey as a long table, which takes any attribute and value (docs/how-to/add-a-survey.md, Segments)",
}
"""Codes of errors that do not prevent storing a round, with their effect and remedy."""


def require_whole_survey(survey: Survey, allowances: Collection[str] = ()) -> Survey:
    """Return the survey without the questions that lack options or have only one, and with warnings about allowed missing parts.

    `allowances`: codes of `ALLOWANCES`. Raises SurveyError for missing parts that are not allowed, and if no question is left.
    """
    findings = []
    cut, single = _find_cut_questions(survey), {q.id for q in survey.questions if len(q.options) < 2}
    for finding in (*survey.findings, *_report_incomplete_questions(survey, cut, single)):
        if finding.code not in ALLOWANCES:
            findings.append(finding)
        elif finding.code in allowances:
            findings.append(replace(finding, level="warning"))
        else:
            raise SurveyError(_describe_finding(survey, finding), where=survey.path)
    questions = tuple(q for q in survey.questions if q.id not in cut | single)
    answers = tuple(a for a in survey.answers if a.question_id not in cut | single)
    require_questions(questions, where=survey.path)
    return replace(survey, questions=questions, answers=answers, findings=tuple(findings))


def _is_lacking_options(distributions: Iterable[tuple[Percentages, int | None]]) -> bool:
    """Return whether the rows of some options are missing, by the percentages and the respondents of each segment.

    Then the percentages of segments with most of the respondents sum to less than 100, and none to more. Segments in which nobody chose the
    missing options still sum to 100. If a respondent could choose several options, some sum to more. Fractions are ignored.
    """
    pairs = [(shares, 1 if n is None else n) for shares, n in distributions if is_readable(shares) and not is_fractions(shares)]
    tolerance = sum_tolerance(shares for shares, _ in pairs)
    sums = [(sum(_list_numbers(shares)), n) for shares, n in pairs]
    short = sum(n for total, n in sums if 0 < total < 100 - tolerance)
    return 2 * short > sum(n for total, n in sums if total > 0) and all(total <= 100 + tolerance for total, _ in sums)


def _find_cut_questions(survey: Survey) -> set[str]:
    """Return the ids of questions that lack options.

    If no pair of the survey reaches 100, its cells are not percentages, which the quarantine reports.
    """
    answers: dict[str, list[tuple[Percentages, int | None]]] = defaultdict(list)
    sizes = {s.key: s.n for s in survey.segments}
    for answer in survey.answers:
        answers[answer.question_id].append((answer.percentages, sizes[answer.segment] if answer.n is None else answer.n))
    cut = {question_id for question_id, question_answers in answers.items() if _is_lacking_options(question_answers)}
    return cut if len(cut) < len(answers) or any(_is_whole(shares) for row in answers.values() for shares, _ in row) else set()


def _is_whole(shares: Percentages) -> bool:
    return is_readable(shares) and sum(_list_numbers(shares)) >= 100 - sum_tolerance([shares])


def _report_incomplete_questions(survey: Survey, cut: Set[str], single: Set[str]) -> list[Finding]:
    """Return findings on questions that nobody answers, and on those with the ids `cut` (lacking options) and `single` (one option)."""
    answered = {answer.question_id for answer in survey.answers}
    unanswered = {q.id for q in survey.questions} - answered - single
    one_option = "A question with only one option cannot be predicted."

    def list_texts(ids: Set[str]) -> tuple[str, ...]:
        return tuple(q.text for q in survey.questions if q.id in ids)

    findings = [
        Finding("error", MISSING_QUESTIONS, "No segment has an answer to these questions", list_texts(unanswered)),
        Finding("error", MISSING_QUESTIONS, _CUT, list_texts(cut)),
        Finding("warning", "single-option-question", one_option, list_texts(single - cut)),
    ]
    return [finding for finding in findings if finding.items]


def _describe_finding(survey: Survey, finding: Finding) -> str:
    """Return `<message>: 68 questions: A?; B?; C? and 65 more; ...`, with the missing items and the remedy."""
    # Unrecognised columns may be the missing ones.
    items = [item for f in survey.findings if f.code in ("unknown-column", "unheard-column") for item in f.items]
    unread = f"; columns that were not read: {list_names(items)}" if items else ""
    noun = finding.code.removeprefix("missing-").removesuffix("s")
    named = list_first_names(finding.items, _NAMED_FIRST, "; ")
    return f"{finding.message}: {format_count(len(finding.items), noun)}: {named}{unread}; {_WHAT_TO_DO[finding.code]}"
