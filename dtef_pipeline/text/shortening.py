"""Shorten long texts in the middle."""

from __future__ import annotations

import json
from typing import Any


def shorten(words: str, limit: int) -> str:
    """Shorten a text of more than `limit` characters in the middle.

    The end is kept because names and sentences with the same beginning often differ only there. The cut is between words if both parts have
    spaces.
    """
    if len(words) <= limit:
        return words
    last = max(1, round((limit - 1) / 2))
    head, tail = words[: limit - 1 - last], words[-last:]
    if " " in head.strip() and " " in tail.strip():
        return f"{head.rsplit(' ', 1)[0]} … {tail.split(' ', 1)[1]}"
    return f"{head}…{tail}"


def shorten_to_line(text: str, limit: int = 70) -> str:
    """Return the text as one line of at most `limit` characters, which ends with `…` if the text is longer."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def shorten_value(value: Any) -> object:
    """Return a value as messages show it: texts and JSON of whole numbers, lists and objects as one short line; the type of any other."""
    if value is None or isinstance(value, (bool, float)):
        return value
    try:
        return shorten_to_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):  # nested deeply, a number of thousands of digits, or nothing that JSON has
        return type(value).__name__
