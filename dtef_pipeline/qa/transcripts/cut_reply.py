"""Replies that begin as a JSON object and are none, because they were cut off or broken on the way: what is complete until there."""

from __future__ import annotations

import re
from typing import Any

from dtef_pipeline.text.structured import Pairs, Value, value_at

_BEGINS = re.compile(r'`*\s*(?:json\s*)?(\{\s*")', re.IGNORECASE)
_AMID_WORDS = re.compile(r'\{\s*"(?:answer|citations)"\s*:', re.IGNORECASE)
_JSON_BLANKS = re.compile(r"[ \t\r\n]*")


def cut_object(text: str, listed: str) -> Pairs | None:
    """The members of a broken object that are complete, in order; None: the text neither begins as an object nor has one of a reply in it,
    or the object is whole.

    Of a list under the key `listed` the complete entries count, though the list is broken. Every other value counts when it is complete: a
    comma or the end of the object follows it, or it is a text, a list or an object and nothing follows it. Each character is looked at a
    fixed number of times.
    """
    opening = _BEGINS.match(text)
    start = opening.start(1) if opening else (found.start() if (found := _AMID_WORDS.search(text)) else None)
    if start is None or value_at(text, start) is not None:
        return None
    members, place = Pairs(), start + 1
    while (key := _key(text, _after_blanks(text, place))) is not None:
        value_place = _after_blanks(text, key.end + 1)
        found_value = value_at(text, value_place)
        if found_value is None or not _is_complete(text, found_value):
            if key.value.strip().casefold() == listed and text[value_place : value_place + 1] == "[":
                members.append((key.value, _entries(text, value_place + 1)))
            return members
        members.append((key.value, found_value.value))
        place = _after_blanks(text, found_value.end)
        if text[place : place + 1] != ",":
            return members
        place += 1
    is_a_text = not members and _is_no_key(text, _after_blanks(text, start + 1))
    return None if is_a_text else members


def _key(text: str, place: int) -> Value | None:
    """The key at this place, with the place of its colon as its end."""
    found = value_at(text, place)
    if found is None or not isinstance(found.value, str):
        return None
    colon = _after_blanks(text, found.end)
    return Value(found.value, colon) if text[colon : colon + 1] == ":" else None


def _is_no_key(text: str, place: int) -> bool:
    """Whether a text in quotation marks ends, and no colon follows: somebody's brackets, and no object."""
    found = value_at(text, place)
    return found is not None and _after_blanks(text, found.end) < len(text)


def _is_complete(text: str, found: Value, end: str = "}") -> bool:
    place = _after_blanks(text, found.end)
    follows = text[place : place + 1]
    return follows in (",", end) if follows else isinstance(found.value, str | list)


def _entries(text: str, place: int) -> list[Any]:
    """The complete entries of a list that begins before this place."""
    entries = []
    while (found := value_at(text, _after_blanks(text, place))) is not None and _is_complete(text, found, "]"):
        entries.append(found.value)
        place = _after_blanks(text, found.end)
        if text[place : place + 1] != ",":
            break
        place += 1
    return entries


def _after_blanks(text: str, place: int) -> int:
    found = _JSON_BLANKS.match(text, place)
    return found.end() if found else place
