"""Values as JSON holds them, and answers inside JSON objects.

Of `{"reasoning": "... [40, 60] ...", "distribution": [55, 45]}` the distribution alone counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

_NO_VALUES = ("<NA>", "NaT")
"""How pandas writes that there is none."""
LOOK_BACK_IN_JSON = 15_000
"""Only this many characters at the end of a response are looked at: room for a long reasoning before the answer."""
_FAILURES = 4
"""So many openings that begin no valid JSON end the search: a bound for hostile text."""
_OBJECT_START = re.compile(r"\{\s*\"")


def simplify_value(value: Any, write_time: Callable[[datetime], str] = str) -> Any:
    """The value in what JSON can hold: None for what is not a finite number, a text for what JSON does not know."""
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
    """A JSON object as its (key, value) pairs, in order, keys that come twice included."""

    def named(self, name: str) -> list[Any]:
        """The values of one key, whatever its case, here or one object deeper."""
        values = [value for key, value in self if key.strip().casefold() == name]
        return values or [value for _, inner in self if isinstance(inner, Pairs) for value in _list_values_of_key(inner, name)]


class FoundObject(NamedTuple):
    """A JSON object and its place in the text."""

    start: int
    end: int
    pairs: Pairs


class Value(NamedTuple):
    """A decoded JSON value, and where its text ends."""

    value: Any
    end: int


_PAIRS_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)


def _list_values_of_key(pairs: Pairs, name: str) -> list[Any]:
    return [value for key, value in pairs if key.strip().casefold() == name]


def format_json_value(value: Any) -> str:
    """A decoded value as a reader is to see it: a text as it is, for its words are read as any words, all else as JSON."""
    return value if isinstance(value, str) else _format_as_json(value)


def _format_as_json(value: Any) -> str:
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_format_as_json(key)}: {_format_as_json(inner)}" for key, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def strip_fence(text: str) -> str:
    """The text without a code fence around it."""
    return text.strip("` \t\r\n").removeprefix("json").lstrip()


def decode_json(text: str) -> Any:
    """The value of a text that is JSON through and through; None for any other text."""
    result = decode_value_at(text, 0)
    return result.value if result and not text[result.end :].strip() else None


def decode_value_at(text: str, start: int) -> Value | None:
    """The JSON value that begins at `start`, if one does."""
    try:
        return Value(*_PAIRS_DECODER.raw_decode(text, start))
    except (ValueError, RecursionError):
        return None


def find_objects(text: str) -> Iterator[FoundObject]:
    """Each outermost JSON object of the text, from the first to the last; what is no valid JSON is passed over."""
    place, failures = 0, 0
    while failures < _FAILURES and (opening := _OBJECT_START.search(text, place)):
        result = decode_value_at(text, opening.start())
        if result is None:
            failures += 1
            place = opening.end()
        else:
            yield FoundObject(opening.start(), result.end, result.value)
            place = result.end


def extract_answer(text: str, key: str, *, marked: bool = False) -> str:
    """The end of the text, each JSON object that has the key replaced by `KEY:` and its value on lines of their own.

    `marked`: an object amid a reasoning may be a draft; only one that begins or ends the text is an answer.
    """
    text = text[-LOOK_BACK_IN_JSON:]
    if f'"{key}"' not in text.casefold():
        return text
    parts: list[str] = []
    position = 0
    for match in find_objects(text):
        amid = strip_fence(text[: match.start]) and strip_fence(text[match.end :])
        answer = "" if marked and amid else _find_answer(match.pairs, key)
        if answer:
            parts += [text[position : match.start], answer]
            position = match.end
    return "".join([*parts, text[position:]])


def _find_answer(pairs: Pairs, key: str) -> str:
    try:
        return "".join(f"\n{key.upper()}: {format_json_value(value)}\n" for value in pairs.named(key))
    except RecursionError:  # deeper than any answer
        return ""
