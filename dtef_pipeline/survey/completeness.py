"""The completeness of a survey: parts that are missing although its files list them prevent reading, unless this is allowed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.model import Finding, Survey
from dtef_pipeline.survey.shares import SUM_TOLERANCE, Percentages, is_fractions, is_readable, sum_tolerance
from dtef_pipeline.survey.validation import list_names
from dtef_pipeline.text.number_words import format_count, list_first_names

MISSING_QUESTIONS, MISSING_ATTRIBUTES = "missing-questions", "missing-attributes"
ALLOWANCES = {MISSING_QUESTIONS: "--allow-missing-questions", MISSING_ATTRIBUTES: "--allow-missing-attributes"}
"""Codes of findings that stop a survey, with the option of `dtef add` that allows them."""

_NAMED_FIRST = 3
_WHAT_TO_DO = {
    MISSING_QUESTIONS: f"the file may be truncated: replace it, or continue without these with {ALLOWANCES[MISSING_QUESTIONS]}",
    MISSING_ATTRIBUTES: "the columns may have been renamed: restore their names, or continue without them with "
    f"{ALLOWANCES[MISSING_ATTRIBUTES]}",
}

_STORED_WITHOUT = "the round is stored without these segments"
NEXT_STEPS = {
    "lost-column": f"{_STORED_WITHOUT}: add their columns and ingest again",
    "no-counts-column": f"{_STORED_WITHOUT}: add their columns and ingest again",
    "unknown-column": f"{_STORED_WITHOUT}: name the columns as other rounds do, such as `O2: 26-35`, and ingest again; if the values are "
    "right and new, give the survey as a long table, which takes any attribute and value (docs/how-to/add-a-survey.md, Segments)",
}
"""Codes of errors that do not prevent storing a round, with their effect and remedy."""


def require_whole_survey(survey: Survey, allowances: Collection[str] = ()) -> Survey:
    """Return the survey without the questions that lack options, and with warnings about allowed missing parts.

    `allowances`: codes of `ALLOWANCES`. Raises SurveyError for missing parts that are not allowed.
    """
    findings = []
    cut = _find_cut_questions(survey)
    for finding in (*survey.findings, *_report_incomplete_questions(survey, cut)):
        if finding.code not in ALLOWANCES:
            findings.append(finding)
        elif finding.code in allowances:
            findings.append(replace(finding, level="warning"))
        else:
            raise SurveyError(_describe_finding(survey, finding), where=survey.path)
    questions = tuple(q for q in survey.questions if q.id not in cut)
    answers = tuple(a for a in survey.answers if a.question_id not in cut)
    return replace(survey, questions=questions, answers=answers, findings=tuple(findings))


def is_lacking_options(distributions: Iterable[tuple[Percentages, int | None]]) -> bool:
    """Return whether the rows of some options are missing, by the percentages and the respondents of each segment.

    Then the percentages of segments with most of the respondents sum to less than 100, and none to more. Segments in which nobody chose the
    missing options still sum to 100. If a respondent could choose several options, some sum to more. Fractions are ignored.
    """
    pairs = [(shares, 1 if n is None else n) for shares, n in distributions if is_readable(shares) and not is_fractions(shares)]
    tolerance = sum_tolerance(shares for shares, _ in pairs)
    sums = [(_sum(shares), n) for shares, n in pairs]
    short = sum(n for total, n in sums if 0 < total < 100 - tolerance)
    return 2 * short > sum(n for total, n in sums if total > 0) and all(total <= 100 + tolerance for total, _ in sums)


def report_cut_questions(texts: Iterable[str]) -> Finding:
    """Return the finding on questions lacking options."""
    message = (
        f"In segments with most of the respondents the percentages of these questions sum to less than {100 - SUM_TOLERANCE:g} %, "
        "so options are missing"
    )
    return Finding("error", MISSING_QUESTIONS, message, tuple(texts))


def _sum(shares: Percentages) -> float:
    return sum(p for p in shares if isinstance(p, float | int))


def _find_cut_questions(survey: Survey) -> set[str]:
    """Return the ids of questions that lack options.

    If no pair of the survey reaches 100, its cells are not percentages, which the quarantine reports.
    """
    answers: dict[str, list[tuple[Percentages, int | None]]] = defaultdict(list)
    sizes = {s.key: s.n for s in survey.segments}
    for answer in survey.answers:
        answers[answer.question_id].append((answer.percentages, sizes[answer.segment] if answer.n is None else answer.n))
    cut = {question_id for question_id, question_answers in answers.items() if is_lacking_options(question_answers)}
    return cut if len(cut) < len(answers) or any(_is_whole(shares) for row in answers.values() for shares, _ in row) else set()


def _is_whole(shares: Percentages) -> bool:
    return is_readable(shares) and _sum(shares) >= 100 - sum_tolerance([shares])


def _report_incomplete_questions(survey: Survey, cut: Collection[str]) -> list[Finding]:
    """Return findings on questions that nobody answers, and on those with the ids `cut`."""
    answered_ids = {answer.question_id for answer in survey.answers}
    texts = tuple(q.text for q in survey.questions if q.id not in answered_ids)
    findings = [
        Finding("error", MISSING_QUESTIONS, "No segment has an answer to these questions", texts),
        report_cut_questions(q.text for q in survey.questions if q.id in cut),
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
