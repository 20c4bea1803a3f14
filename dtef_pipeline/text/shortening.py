"""Shorten long texts in the middle."""

from __future__ import annotations


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
