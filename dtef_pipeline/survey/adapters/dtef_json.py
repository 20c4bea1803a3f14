"""DTEFSurveyData: one JSON object with `surveyId`, `questions` by id and `segments` with their responses."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters.text_files import make_utf8_error
from dtef_pipeline.survey.answer_scales.non_answers import Role
from dtef_pipeline.survey.answer_scales.scales import KINDS
from dtef_pipeline.survey.attributes import clean, clean_lines, segment
from dtef_pipeline.survey.model import Answer, Finding, Question, Segment, Survey, Unreadable
from dtef_pipeline.survey.validation import (
    check_places,
    check_question,
    find_round_name,
    list_names,
    parse_effective_respondents,
    parse_percentage,
    parse_position,
    parse_respondents,
    parse_role,
    require_questions,
)
from dtef_pipeline.text.number_words import format_count

_OTHER_TYPES = re.compile(r"multi\w*.?select|select.?all|open|opinion|rank|text|free", re.IGNORECASE)
_JSON_TEXT = r'"(?:[^"\\]|\\.)*"'
_TOP_LEVEL_FIELDS = ("surveyId", "questions", "segments")


class DtefJson:
    """An adapter of the published `DTEFSurveyData` form."""

    name = "dtef-json"
    accepts = f"a .json file in the DTEFSurveyData form: an object with {', '.join(_TOP_LEVEL_FIELDS)}"

    def recognises(self, path: Path) -> bool:
        """Return whether the path is a .json file. Its contents are only checked by `read`, whose errors are precise."""
        return path.is_file() and path.suffix.lower() == ".json"

    def read(self, path: Path) -> Survey:
        """Read the survey of the file. Its round is taken from the survey id (global-dialogues-gd4 is GD4)."""
        source = JsonText.read_json_text(path)
        data = source.parse_survey_object()
        survey_id = source.field(data, "surveyId", str, "the survey", None)
        questions, findings = _read_json_questions(source, source.field(data, "questions", dict, "the survey", None))
        require_questions(questions, where=source.where)
        segments, answers = _read_segments(source, data, {q.id for q in questions})
        return Survey(
            round=find_round_name(survey_id),
            name=clean(str(data.get("surveyName") or survey_id)),
            adapter=self.name,
            path=str(path),
            questions=tuple(questions),
            segments=tuple(segments),
            answers=tuple(answers),
            findings=tuple(findings),
        )


class JsonText:
    """The text of a JSON file, for strict parsing and for the line numbers of errors."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where

    def make_error(
        self, problem: str, line: int | None = None, arrived: object = None, allowed: str | None = None
    ) -> SurveyError:
        """Return an error of this file."""
        return SurveyError(problem, where=self.where, line=line, arrived=arrived, allowed=allowed)

    @classmethod
    def read_json_text(cls, path: Path) -> JsonText:
        """Read a file, which must be UTF-8."""
        try:
            return cls(path.read_text(encoding="utf-8-sig"), str(path))
        except UnicodeDecodeError:
            raise make_utf8_error(path, "JSON") from None

    def parse_survey_object(self) -> dict[str, Any]:
        """Return the object of the file, which has the three top-level fields."""
        if not self.text.strip():
            raise self.make_error("the file is empty", allowed=DtefJson.accepts)
        try:
            data = json.loads(self.text, object_pairs_hook=self._require_unique_names)
        except json.JSONDecodeError as error:
            raise self._make_not_json_error(error) from error
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
            raise self.make_error("not a survey", arrived=str(error), allowed=DtefJson.accepts) from error
        if not isinstance(data, dict):
            actual = f"a JSON {type(data).__name__}"
            raise self.make_error("not a survey", arrived=actual, allowed=DtefJson.accepts)
        if missing := [name for name in _TOP_LEVEL_FIELDS if name not in data]:
            problem = f"not a survey: missing {', '.join(missing)}"
            raise self.make_error(
                problem, arrived=f"fields {list_names(data)}", allowed=f"fields {', '.join(_TOP_LEVEL_FIELDS)}"
            )
        return data

    def _make_not_json_error(self, error: json.JSONDecodeError) -> SurveyError:
        """Return the error for invalid JSON. If the text ends too early, it points to the end."""
        text = self.text.rstrip()
        if error.pos < len(text) and not error.msg.startswith("Unterminated string"):
            return self.make_error("not JSON", line=error.lineno, arrived=error.msg)
        line = self._find_line_at(max(len(text) - 1, 0))
        requirement = f"a complete JSON object; the file ends too early, after {format_count(len(text), 'character')}, with {text[-30:]!r}"
        return self.make_error("not JSON", line=line, arrived=error.msg, allowed=requirement)

    def field(self, owner: Mapping[str, Any], name: str, kind: type, subject: str, line: int | None) -> Any:
        """Return `owner[name]`. Raises SurveyError if it is missing or of another type."""
        value = owner.get(name)
        if not isinstance(value, kind):
            problem = f"{name} of {subject} is {'not usable' if name in owner else 'missing'}"
            raise self.make_error(problem, line=line, arrived=value, allowed=_TYPE_NAMES[kind])
        return value

    def find_question(self, question_id: str) -> int | None:
        """Return the line of the first key with this id, or None without one."""
        return self._key_lines.get(json.dumps(question_id, ensure_ascii=False), [None])[0]

    def find_segment(self, segment_id: str) -> int | None:
        """Return the line of the last segment with this id, or None without one."""
        return self._segment_lines.get(json.dumps(segment_id, ensure_ascii=False))

    def find_responses(self) -> list[int]:
        """Return the lines of all responses."""
        return self._key_lines.get('"questionId"', [])

    @cached_property
    def _key_lines(self) -> dict[str, list[int]]:
        """Key, as written -> its lines."""
        lines = defaultdict[str, list[int]](list)
        for match in re.finditer(rf"({_JSON_TEXT})\s*:", self.text):
            lines[match[1]].append(self._find_line_at(match.start()))
        return lines

    @cached_property
    def _segment_lines(self) -> dict[str, int]:
        matches = re.finditer(rf'"id"\s*:\s*({_JSON_TEXT})', self.text)
        return {match[1]: self._find_line_at(match.start()) for match in matches}

    def _find_line_at(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    def _require_unique_names(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = sorted(name for name, _ in pairs)
            duplicate = next(a for a, b in pairwise(names) if a == b)
            lines = self._key_lines.get(json.dumps(duplicate, ensure_ascii=False), [])
            line = lines[1] if len(lines) == 2 else None
            raise self.make_error(f"{duplicate!r} occurs twice in one object", line=line, allowed="each id or field once")
        return result


_TYPE_NAMES: dict[type, str] = {str: "a text", dict: "an object", list: "a list"}


def _read_json_questions(source: JsonText, raw: Mapping[str, Any]) -> tuple[list[Question], list[Finding]]:
    """Return the questions in file order, without other types, and findings on these."""
    questions: list[Question] = []
    other_types: list[str] = []
    for question_id, entry in raw.items():
        subject = f"question {question_id}"
        line = source.find_question(question_id)
        if not isinstance(entry, dict):
            raise source.make_error(f"{subject} is not an object", line=line, arrived=entry, allowed="{text, type, options}")
        text = clean_lines(source.field(entry, "text", str, subject, line))
        kind = str(entry.get("type", ""))
        if _OTHER_TYPES.search(kind):
            other_types.append(text)
            continue
        options = source.field(entry, "options", list, subject, line)
        if not all(isinstance(o, str) for o in options):
            raise source.make_error(f"options of {subject} are not all texts", line=line, arrived=options, allowed="texts")
        scale_name = entry.get("scale", kind)
        scale = scale_name if scale_name in KINDS else None
        roles, positions = _read_places(source, entry, len(options), subject, line)
        battery = None if entry.get("battery") is None else clean(source.field(entry, "battery", str, subject, line)) or None
        question = Question(question_id, text, tuple(map(clean, options)), scale, battery, roles=roles, positions=positions)
        check_question(question, where=source.where, line=line)
        check_places(question, [line] * len(options), where=source.where)
        questions.append(question)
    finding = Finding("info", "question-type", "Only single-select questions are used.", tuple(other_types))
    return questions, [finding] if other_types else []


def _read_places(
    source: JsonText, entry: Mapping[str, Any], k: int, subject: str, line: int | None
) -> tuple[tuple[Role | None, ...], tuple[float | None, ...]]:
    """Return the stated roles and positions of the k options, None where they are missing."""
    lists: dict[str, list[Any]] = {}
    for name in ("role", "position"):
        values = [None] * k if entry.get(name) is None else source.field(entry, name, list, subject, line)
        if len(values) != k:
            problem, requirement = (
                f"{name} of {subject} does not have one value per option",
                f"{format_count(k, 'value')}, with null for a missing one",
            )
            raise source.make_error(problem, line=line, arrived=values, allowed=requirement)
        lists[name] = values
    roles = tuple(parse_role(value, where=source.where, line=line) for value in lists["role"])
    return roles, tuple(parse_position(value, where=source.where, line=line) for value in lists["position"])


def _read_segments(source: JsonText, data: Mapping[str, Any], keys: set[str]) -> tuple[list[Segment], list[Answer]]:
    """Return all segments and their answers to the used questions."""
    response_lines = iter(source.find_responses())
    segments: list[Segment] = []
    answers: list[Answer] = []
    ids: set[str] = set()
    for entry in source.field(data, "segments", list, "the survey", None):
        if not isinstance(entry, dict):
            raise source.make_error(
                "a segment is not an object", arrived=entry, allowed="{id, attributes, sampleSize, responses}"
            )
        segment_id = source.field(entry, "id", str, f"segment {len(segments) + 1}", None)
        line = source.find_segment(segment_id)
        if segment_id in ids:
            raise source.make_error(f"duplicate segment id {segment_id!r}", line=line, allowed="each segment once")
        ids.add(segment_id)
        group = _read_segment(source, entry, segment_id, line)
        segments.append(group)
        answers += (
            a for a in _iterate_json_answers(source, entry, group, data["questions"], response_lines) if a.question_id in keys
        )
    return segments, answers


def _read_segment(source: JsonText, entry: Mapping[str, Any], segment_id: str, line: int | None) -> Segment:
    subject = f"segment {segment_id!r}"
    attributes = entry.get("attributes")
    if not isinstance(attributes, dict) or not attributes or not all(isinstance(v, str) for v in attributes.values()):
        requirement = "an object with at least one attribute and its text"
        raise source.make_error(f"attributes of {subject} are not usable", line=line, arrived=attributes, allowed=requirement)
    n = parse_respondents(entry.get("sampleSize"), f"sampleSize of {subject}", where=source.where, line=line)
    group = segment(attributes, n, where=source.where, line=None)
    effective = entry.get("n_effective")
    return replace(
        group,
        n_effective=parse_effective_respondents(effective, f"n_effective of {subject}", where=source.where, line=line),
    )


def _iterate_json_answers(
    source: JsonText, entry: Mapping[str, Any], group: Segment, entries: Mapping[str, object], lines: Iterator[int]
) -> Iterator[Answer]:
    for response in source.field(entry, "responses", list, f"segment {group.key}", None):
        line = next(lines, None)
        subject = f"a response of segment {group.key}"
        if not isinstance(response, dict):
            raise source.make_error(f"{subject} is not an object", arrived=response, allowed="{questionId, distribution}")
        question_id = source.field(response, "questionId", str, subject, line)
        if question_id not in entries:
            problem = f"{subject} to an unknown question"
            raise source.make_error(problem, line=line, arrived=question_id, allowed=f"ids of questions: {list_names(entries)}")
        distribution = source.field(response, "distribution", list, f"{subject} to {question_id}", line)
        n, effective = response.get("n", response.get("sampleSize")), response.get("n_effective")
        subject = f"{subject} to {question_id}"
        n = parse_respondents(n, f"n of {subject}", where=source.where, line=line)
        effective = parse_effective_respondents(effective, f"n_effective of {subject}", where=source.where, line=line)
        yield Answer(group.key, question_id, tuple(map(_read_json_percentage, distribution)), n, source.where, line, effective)


def _read_json_percentage(value: object) -> float | Unreadable | None:
    if isinstance(value, str):
        return parse_percentage(value)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return None if value is None else float(value)
    return Unreadable(json.dumps(value))
