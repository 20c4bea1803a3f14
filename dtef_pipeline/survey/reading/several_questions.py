"""The answers to several questions in the text of one response, split so that each question reads only its own part.

Accepted are a JSON object with the keys Q1, Q2, ... (in any order; also `Question 1` and `1`; each value an array, an object or a text),
lines that begin with `Q1:` or `Question 1`, and exactly as many arrays as there are questions, in one array. The text after the last
`DISTRIBUTIONS:` is read first. A question without its own part has no answer, and never another's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from dtef_pipeline.text.json_values import Pairs, decode_json, decode_value_at, find_objects, format_json_value, strip_fence
from dtef_pipeline.text.plain import LOOK_BACK_FAR, strip_thinking

Parts = dict[int, list[str]]
"""The texts that answer each question, by its number: Q1 is 1."""

_ANSWERS_FOLLOW = re.compile(
    r"(?im)(?:^[^\w\n\[{]{0,8}|[.!?)] )(?:(?:my |the )?(?:final |predicted |estimated ){0,2}distributions|"
    r"(?:my |the )?final (?:answer|distribution|prediction|estimate)s?|answers)[*_ ]{0,4}:"
)
_QUESTION_NUMBER = re.compile(r"\s*(?:(?:q|question)[\s_#-]*)?([0-9]{1,2})\s*[:.]?\s*", re.IGNORECASE)
_HEADER = re.compile(
    r"(?im)(?<!\w)(?:q|question)[ _#]?([0-9]{1,2})(?!\w)[\"'*_` )\]]{0,4}(?:\([^()\n]{0,80}\)[*_ ]{0,4})?[:=]"
    r"|^[^\w\n]{0,8}(?:q|question)[ _#]?([0-9]{1,2})(?!\w)[\"'*_` )\]]{0,4}(?:[.)–—-]|$)"
)
_NUMBERED_ARRAY = re.compile(r"(?m)^[^\w\n\[]{0,6}([0-9]{1,2})[.):] ?[*_]{0,2} ?(?=\[)")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ARRAY_OF_ARRAYS = re.compile(r"\[\s{0,9}\[")
_HEADERS = 60
"""Headers looked at, from the end of the text."""
_NAMING_KEYS = ("question", "id", "question_id")


def split_by_question(text: str, size: int, *, has_marker: bool = False) -> Parts:
    """Return the texts that answer each of `size` questions, by number from 1; empty if the response has no answers by question.

    A question with several texts was answered more than once. Number 0 means that the response does not count from 1.
    """
    outside = strip_thinking(text)[-LOOK_BACK_FAR:]
    for region in _iterate_regions(outside, has_marker):
        parts = (
            _split_objects(region)
            or _split_lines(region, _HEADER)
            or _split_lines(region, _NUMBERED_ARRAY)
            or _split_arrays(region, size)
        )
        if parts:
            return parts
    return {}


def _iterate_regions(text: str, has_marker: bool) -> Iterator[str]:
    """Yield the text after the last marker, then the whole if the answer needs no marker or is only JSON."""
    end = 0
    for marker in _ANSWERS_FOLLOW.finditer(text):
        end = marker.end()
    if end:
        yield text[end:]
    if not has_marker or (not end and decode_json(strip_fence(text)) is not None):
        yield text


def _split_objects(text: str) -> Parts:
    parts: Parts = {}
    for entry in find_objects(text):
        for number, value in _list_answers(entry.pairs):
            try:
                part = "" if value is None else format_json_value(value)
            except RecursionError:
                part = "nested too deeply"
            parts.setdefault(number, []).append(part)
    return parts


def _list_answers(pairs: Pairs) -> list[tuple[int, Any]]:
    """Return question numbers and answers of an object: by its keys, the keys of its objects, or its key `question`."""
    if answers := _list_numbered_keys(pairs):
        return answers
    named = [value for key, value in pairs if key.strip().casefold() in _NAMING_KEYS]
    number = _parse_question_number(str(named[0])[:40]) if len(named) == 1 else None
    if number is not None:
        members = [pair for pair in pairs if pair[0].strip().casefold() not in _NAMING_KEYS]
        return [(number, members[0][1] if len(members) == 1 else Pairs(members))]
    return [answer for _, inner in pairs if isinstance(inner, Pairs) for answer in _list_numbered_keys(inner)]


def _list_numbered_keys(pairs: Pairs) -> list[tuple[int, Any]]:
    answers = [(_parse_question_number(key), value) for key, value in pairs if not _is_number(value)]
    return [(number, value) for number, value in answers if number is not None]


def _parse_question_number(key: str) -> int | None:
    match = _QUESTION_NUMBER.fullmatch(key) if len(key) < 40 else None
    return int(match[1]) if match else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)  # `{"1": 40, "2": 60}` numbers options


def _split_lines(text: str, header: re.Pattern[str]) -> Parts:
    """Return the text after each header, up to the next one or to the first blank line."""
    headers = list(deque(header.finditer(text), maxlen=_HEADERS))
    parts: Parts = {}
    for place, match in enumerate(headers):
        stop = headers[place + 1].start() if place + 1 < len(headers) else len(text)
        part = _BLANK_LINE.split(text[match.end() : stop].strip(), 1)[0]
        parts.setdefault(int(match[1] or match[2]), []).append(part)
    return parts


def _split_arrays(text: str, size: int) -> Parts:
    """Return the arrays of numbers in one array if they are as many as questions and there is no other."""
    opening = _ARRAY_OF_ARRAYS.search(text)
    outer = decode_value_at(text, opening.start()) if opening else None
    if outer is None or not isinstance(outer.value, list) or _ARRAY_OF_ARRAYS.search(text, outer.end):
        return {}
    arrays = outer.value
    if len(arrays) != size or not all(isinstance(inner, list) and all(map(_is_number, inner)) for inner in arrays):
        return {}
    return {place: [format_json_value(inner)] for place, inner in enumerate(arrays, start=1)}
