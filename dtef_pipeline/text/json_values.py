"""JSON values, read without ambiguity (no key twice, no NaN, no infinite number), and answers inside JSON objects.

In `{"reasoning": "... [40, 60] ...", "distribution": [55, 45]}` only the distribution counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from dtef_pipeline.text.shortening import shorten_to_line

_NO_VALUES = ("<NA>", "NaT")
"""How pandas writes that there is none."""
LOOK_BACK_IN_JSON = 15_000
"""Only this many characters at the end of a response are looked at: room for a long reasoning before the answer."""
_FAILURES = 4
"""So many openings that begin no valid JSON end the search: a bound for hostile text."""
_OBJECT_START = re.compile(r"\{\s*\"")


def simplify_value(value: Any, write_time: Callable[[datetime], str] = str) -> Any:
    """Return the value as JSON can represent it: None for numbers that are not finite, text for types that JSON lacks."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): simplify_value(item, write_time) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [simplify_value(item, write_time) for item in value]
    if hasattr(value, "tolist"):  # numpy's
        return simplify_value(value.tolist(), write_time)
    if str(value) in _NO_VALUES:
        return None
    return write_time(value) if isinstance(value, datetime) else str(value)


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its (key, value) pairs in order, including repeated keys."""

    def named(self, name: str) -> list[Any]:
        """Return the values of a key in any case, in this object and its direct children."""
        children = [inner for _, inner in self if isinstance(inner, Pairs)]
        return self.find_values(name) or [value for child in children for value in child.find_values(name)]

    def find_values(self, name: str) -> list[Any]:
        """Return the values of a key in any case, in this object only."""
        return [value for key, value in self if key.strip().casefold() == name]


class FoundObject(NamedTuple):
    """A JSON object and its position in the text."""

    start: int
    end: int
    pairs: Pairs


class Value(NamedTuple):
    """A decoded JSON value and the position where its text ends."""

    value: Any
    end: int


_PAIRS_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)


def format_json_value(value: Any) -> str:
    """Return a text value unchanged, and any other value as JSON, for a reader of answers."""
    return value if isinstance(value, str) else _format_as_json(value)


def _format_as_json(value: Any) -> str:
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_format_as_json(key)}: {_format_as_json(inner)}" for key, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def strip_fence(text: str) -> str:
    """Return the text without the code fence around it."""
    return text.strip("` \t\r\n").removeprefix("json").lstrip()


def decode_json(text: str) -> Any:
    """Return the value if the whole text is JSON, else None."""
    result = decode_value_at(text, 0)
    return result.value if result and not text[result.end :].strip() else None


def decode_value_at(text: str, start: int) -> Value | None:
    """Return the JSON value that begins at `start`, or None."""
    try:
        return Value(*_PAIRS_DECODER.raw_decode(text, start))
    except (ValueError, RecursionError):
        return None


def find_objects(text: str) -> Iterator[FoundObject]:
    """Return the outermost JSON objects of the text in order. Invalid JSON is skipped."""
    place, failures = 0, 0
    while failures < _FAILURES and (opening := _OBJECT_START.search(text, place)):
        result = decode_value_at(text, opening.start())
        if result is None:
            failures += 1
            place = opening.end()
        else:
            yield FoundObject(opening.start(), result.end, result.value)
            place = result.end


def extract_answer(text: str, key: str, *, has_marker: bool = False) -> str:
    """Return the end of the text, with each JSON object that has the key replaced by `KEY:` and its value on separate lines.

    `has_marker`: an object within reasoning may be a draft, so only one at the beginning or end of the text counts as an answer.
    """
    text = text[-LOOK_BACK_IN_JSON:]
    if f'"{key}"' not in text.casefold():
        return text
    parts: list[str] = []
    position = 0
    for match in find_objects(text):
        amid = strip_fence(text[: match.start]) and strip_fence(text[match.end :])
        try:
            values = [] if has_marker and amid else match.pairs.named(key)
            answer = "".join(f"\n{key.upper()}: {format_json_value(value)}\n" for value in values)
        except RecursionError:  # deeper than any answer
            answer = ""
        if answer:
            parts += [text[position : match.start], answer]
            position = match.end
    return "".join([*parts, text[position:]])


class JsonFault(ValueError):
    """The reason why a text is not such JSON."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line
        """Line of the text, from 1; None: unknown."""


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON value; bytes are UTF-8. Raises JsonFault."""
    try:
        return _DECODER.decode(text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise JsonFault(f"{error.msg}, character {error.pos + 1}", error.lineno) from None
    except RecursionError:
        raise JsonFault("it is nested too deeply") from None
    except ValueError as error:
        raise JsonFault(str(error)) from None


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"the key {shorten_to_line(twice)!r} is given twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _parse_finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {shorten_to_line(text, 40)} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite, object_pairs_hook=_require_unique_keys)
