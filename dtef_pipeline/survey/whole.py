"""Is a survey whole: what its own files say should be there and is not stops it, unless that is allowed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.model import Finding, Survey, Unreadable
from dtef_pipeline.survey.quarantine import SUM_TOLERANCE
from dtef_pipeline.survey.validation import listed
from dtef_pipeline.text.counted import counted

MISSING_QUESTIONS, MISSING_ATTRIBUTES = "missing-questions", "missing-attributes"
ALLOWANCES = {MISSING_QUESTIONS: "--allow-missing-questions", MISSING_ATTRIBUTES: "--allow-missing-attributes"}
"""Codes of findings that stop a survey, with the option of `dtef ingest` by which it goes on."""

_NAMED_FIRST = 3
_BROKEN_OFF = "What stands last has fewer rows than all others, so the file may have been cut"
_WHAT_TO_DO = {
    MISSING_QUESTIONS: f"the file may have been cut: put the whole one there, or give {ALLOWANCES[MISSING_QUESTIONS]} to go on "
    "without them",
    MISSING_ATTRIBUTES: f"the columns may have been renamed: name them as in the guide, or give {ALLOWANCES[MISSING_ATTRIBUTES]} "
    "to go on without them",
}

Percentages = Sequence[float | Unreadable | None]


def whole(survey: Survey, allowed: Collection[str] = ()) -> Survey:
    """The survey, with what is missing and allowed as a warning among its findings.

    `allowed`: codes of `ALLOWANCES`. Raises SurveyError for what is missing and not allowed.
    """
    findings = []
    for finding in (*survey.findings, *_incomplete_questions(survey), *_broken_off(survey)):
        if finding.code not in ALLOWANCES:
            findings.append(finding)
        elif finding.code in allowed:
            findings.append(replace(finding, level="warning"))
        else:
            raise SurveyError(_said(finding, _unread(survey)), where=survey.path)
    return replace(survey, findings=tuple(findings))


def lacks_options(distributions: Iterable[Percentages]) -> bool:
    """Whether the rows of some options are gone: no distribution sums to 100, and some to less."""
    sums = [sum(p for p in shares if isinstance(p, float)) for shares in distributions if _is_readable(shares)]
    return any(0 < s < 100 - SUM_TOLERANCE for s in sums) and all(s < 100 - SUM_TOLERANCE for s in sums)


def cut_questions(texts: Iterable[str]) -> Finding:
    """The finding on questions that lack options."""
    message = f"The percentages of these questions reach {100 - SUM_TOLERANCE:g} % in no segment, so options are missing"
    return Finding("error", MISSING_QUESTIONS, message, tuple(texts))


def _is_readable(shares: Percentages) -> bool:
    return bool(shares) and not any(p is None or isinstance(p, Unreadable) or p < 0 or p != p for p in shares)


def _incomplete_questions(survey: Survey) -> list[Finding]:
    """Questions that nobody answers, or that lack options.

    Where all questions lack some, their percentages are no percentages, and the quarantine says so.
    """
    answers: dict[str, list[Percentages]] = defaultdict(list)
    for answer in survey.answers:
        answers[answer.question_id].append(answer.percentages)
    unanswered = tuple(q.text for q in survey.questions if q.id not in answers)
    cut = [q.text for q in survey.questions if lacks_options(answers.get(q.id, []))]
    found = [
        Finding("error", MISSING_QUESTIONS, "No segment has an answer to these questions", unanswered),
        cut_questions(cut if len(cut) < len(survey.questions) else ()),
    ]
    return [finding for finding in found if finding.items]


def _broken_off(survey: Survey) -> list[Finding]:
    """Whether the file seems to end within its last segment, or its last question, whichever its rows are ordered by."""
    if not survey.answers:
        return []
    last = survey.answers[-1]
    questions, segments = Counter(a.segment for a in survey.answers), Counter(a.question_id for a in survey.answers)
    texts = {q.id: q.text for q in survey.questions}
    ends = [
        _fewer_than_all_others(questions, last.segment, last.segment, "question"),
        _fewer_than_all_others(segments, last.question_id, texts[last.question_id], "segment"),
    ]
    items = tuple(filter(None, ends))
    return [Finding("warning", "fewer-rows-at-the-end", _BROKEN_OFF, items)] if items else []


def _fewer_than_all_others(counts: Counter[str], last: str, name: str, noun: str) -> str | None:
    others = [number for key, number in counts.items() if key != last]
    if not others or counts[last] >= min(others):
        return None
    return f"{name}: {counted(counts[last], noun)}, all others at least {min(others)}"


def _unread(survey: Survey) -> str:
    """The columns that nothing is known of, for a message: they may be what is missing."""
    items = [item for f in survey.findings if f.code in ("unknown-column", "unheard-column") for item in f.items]
    return f"; columns that were not read: {listed(items)}" if items else ""


def _said(finding: Finding, unread: str) -> str:
    """`<message>: 68 questions: A?; B?; C? and 65 more; ...`: what is missing, and what to do."""
    noun = finding.code.removeprefix("missing-").removesuffix("s")
    more = f" and {len(finding.items) - _NAMED_FIRST:,} more" if len(finding.items) > _NAMED_FIRST else ""
    named = "; ".join(finding.items[:_NAMED_FIRST])
    return f"{finding.message}: {counted(len(finding.items), noun)}: {named}{more}{unread}; {_WHAT_TO_DO[finding.code]}"
