"""The rules for survey files of every layout. Each violation raises SurveyError."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite, nan

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.answer_scales.non_answers import OPTION_ROLES, Role
from dtef_pipeline.survey.attributes import require_unique_segment_keys
from dtef_pipeline.survey.model import Question, Survey, Unreadable
from dtef_pipeline.text.number_words import list_first_names

_WRITTEN_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_MAX_PEOPLE = 2**31 - 1  # what the tables can hold
_MAX_SHOWN = 12  # names listed in a message before it stops


def find_round_name(name: str) -> str:
    """Return the round of a directory, file or survey id, or a blank, so that another name can be given."""
    try:
        return make_round_id(name, where="")
    except SurveyError:
        return ""


def make_round_id(name: str, *, where: str) -> str:
    """Return the round of a directory, file or survey id: `GD4` for gd4 and for global-dialogues-gd4."""
    text = re.sub(r"^global[-_ ]dialogues[-_ ]", "", name.strip(), flags=re.IGNORECASE)
    if match := re.search(r"(?:^|[-_ ])(gd\d+[a-z]*)\Z", text, flags=re.IGNORECASE):
        text = match[1]
    text = re.sub(r"\s+", "-", text).upper()
    if not re.fullmatch(r"[^\W_][\w.-]*", text) or "..." in text:
        requirement = "letters, digits, '-', '_' and single dots, beginning with a letter or digit"
        raise SurveyError("this cannot become a round id", where=where, arrived=name, allowed=requirement)
    return text


def require_columns(columns: Sequence[str], names: Sequence[str], *, where: str) -> None:
    """Raise SurveyError if a table lacks a column."""
    missing = [name for name in names if name not in columns]
    if missing:
        problem = f"missing {'column' if len(missing) == 1 else 'columns'} {list_names(missing)}"
        raise SurveyError(problem, where=where, line=1, arrived=list_names(columns))


def parse_percentage(cell: str) -> float | Unreadable | None:
    """Return 34.2 for `34.2%`, `34.2 %` and `34.2`, None for a blank cell; `nan` and `-3%` are numbers, checked later."""
    text = cell.strip().removesuffix("%").strip()
    if not text:
        return None
    if _WRITTEN_NUMBER.fullmatch(text):
        return float(text)
    if text.casefold() in ("nan", "inf", "-inf"):
        return float(text)
    return Unreadable(cell.strip())


def parse_whole_count(cell: str) -> int | None:
    """Return a count of people: `12`, `12.0`; None for a blank and for `<NA>`, `-1`, `1.5`."""
    text = cell.strip()
    return parse_people_count(float(text)) if _WRITTEN_NUMBER.fullmatch(text) else None


def parse_weighted_count(cell: str) -> float | Unreadable | None:
    """Return a possibly weighted count of people: `12`, `12.5`; a blank is None, `<NA>` and `-1` are `Unreadable`."""
    text = cell.strip()
    if not text:
        return None
    count = float(text) if _WRITTEN_NUMBER.fullmatch(text) else -1.0
    return count if 0 <= count <= _MAX_PEOPLE else Unreadable(text)


def parse_respondents(value: object, subject: str, *, where: str, line: int | None) -> int | None:
    """Return the number of respondents in a cell or a JSON value; None if blank."""
    number = _parse_number(value)
    count = None if number is None else parse_people_count(number)
    if number is not None and count is None:
        problem = f"{subject} is not a number of respondents"
        raise SurveyError(problem, where=where, line=line, arrived=value, allowed="a whole number >= 0")
    return count


def parse_effective_respondents(value: object, subject: str, *, where: str, line: int | None) -> float | None:
    """Return the effective number of respondents in a cell or a JSON value; None if blank."""
    number = _parse_number(value)
    if number is not None and not 0 < number <= _MAX_PEOPLE:
        problem = f"{subject} is not a number of respondents"
        raise SurveyError(problem, where=where, line=line, arrived=value, allowed="a number above 0")
    return None if number is None else float(number)


def _parse_number(value: object) -> float | None:
    """Return the number in a cell or a JSON value, None for a blank, NaN for anything else."""
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _WRITTEN_NUMBER.fullmatch(text) else nan if text else None
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return nan


def parse_people_count(value: float) -> int | None:
    """Return the number as a count of people, or None if it is negative, fractional, infinite or too large."""
    return int(value) if 0 <= value <= _MAX_PEOPLE and value == int(value) else None


def check_question(question: Question, *, where: str, line: int | None) -> None:
    """Raise SurveyError for a question without text or options, or with the same option twice."""
    if not question.text:
        raise SurveyError(f"question {question.id} has no text", where=where, line=line)
    if not question.options or not all(question.options):
        problem = f"question {question.id} has no options, or a blank option"
        raise SurveyError(problem, where=where, line=line, arrived=list(question.options), allowed="at least two named options")
    first: dict[str, str] = {}
    for option in question.options:
        key = normalize_text(option)
        if key in first:
            problem = f"question {question.id} has the same option twice"
            raise SurveyError(problem, where=where, line=line, arrived=[first[key], option], allowed="each option once")
        first[key] = option


def parse_role(cell: object, *, where: str, line: int | None) -> Role | None:
    """Return the option's role in a cell; None if blank."""
    text = normalize_text(str(cell)) if cell is not None else ""
    option_role = next((role for role in OPTION_ROLES if role == text), None)
    if text and option_role is None:
        raise SurveyError("unknown role", where=where, line=line, arrived=cell, allowed=f"{', '.join(OPTION_ROLES)}, or blank")
    return option_role


def parse_position(cell: object, *, where: str, line: int | None) -> float | None:
    """Return the option's position in a cell; None if blank."""
    text = str(cell).strip() if cell is not None else ""
    if text and (isinstance(cell, bool) or not _WRITTEN_NUMBER.fullmatch(text) or not isfinite(float(text))):
        raise SurveyError(
            "this is not a position", where=where, line=line, arrived=cell, allowed="a number such as 1.5, or blank"
        )
    return float(text) if text else None


def check_places(question: Question, lines: Sequence[int | None], *, where: str) -> None:
    """Raise SurveyError for roles and positions that contradict each other or the scale. `lines` are those of the options."""
    places = [place for place in question.positions if place is not None]
    if question.scale == "ordinal" and places and len(set(places)) < 2:
        problem = f"all options of question {question.id} have the same position, but its scale is ordinal"
        raise SurveyError(problem, where=where, line=lines[0], arrived=places[0], allowed="at least two different positions")
    rows = zip(question.options, question.roles, question.positions, lines, strict=True) if question.positions else ()
    for option, role, place, line in rows:
        subject = f"option {option!r} of question {question.id}"
        if place is not None and role not in (None, "substantive"):
            problem = f"{subject} has the role {role} and a position"
            raise SurveyError(
                problem, where=where, line=line, arrived=place, allowed="a blank position, or the role substantive"
            )
        if place is not None and question.scale == "nominal":
            raise SurveyError(
                f"{subject} has a position, but the scale is nominal", where=where, line=line, arrived=place, allowed="a blank"
            )
        if place is None and places and role == "substantive":
            problem = f"{subject} is substantive and has no position, though other options of the question have one"
            raise SurveyError(problem, where=where, line=line, allowed="a number, or another role")


def require_questions(questions: Sequence[Question], *, where: str) -> None:
    """Raise SurveyError if there is no question."""
    if not questions:
        problem = "no question to predict; add a single-select question with at least two options"
        raise SurveyError(problem, where=where)


def check_survey(survey: Survey) -> Survey:
    """Return the survey. Raises SurveyError without a round, questions or segments, for duplicate keys, and for answers with unknown keys."""
    if not survey.round:
        problem, requirement = (
            "neither its name nor its id can become a round id",
            "a name for the round (--round), such as GD4",
        )
        raise SurveyError(problem, where=survey.path, arrived=survey.name, allowed=requirement)
    require_questions(survey.questions, where=survey.path)
    if not survey.segments:
        raise SurveyError("no segment; add at least one demographic group", where=survey.path)
    require_unique_segment_keys(survey.segments, where=survey.path)
    segments, questions = {s.key for s in survey.segments}, {q.id for q in survey.questions}
    pairs: set[tuple[str, str]] = set()
    for a in survey.answers:
        if a.segment not in segments or a.question_id not in questions:
            problem, actual = "an answer with an unknown segment or question", [a.segment, a.question_id]
            raise SurveyError(
                problem, where=a.file, line=a.line, arrived=actual, allowed=f"questions {list_names(sorted(questions))}"
            )
        if (a.segment, a.question_id) in pairs:
            problem = f"two answers of segment {a.segment} to question {a.question_id}"
            raise SurveyError(problem, where=a.file, line=a.line, allowed="one answer per segment and question")
        pairs.add((a.segment, a.question_id))
    return survey


def list_names(names: Iterable[object]) -> str:
    """Return the names for a message, cut after a dozen."""
    return list_first_names([str(name) for name in names], _MAX_SHOWN)
