"""The first line of a text, shortened."""

from __future__ import annotations


def shorten_to_line(text: str, limit: int = 70) -> str:
    """Return the text as one line of at most `limit` characters, which ends with `…` if the text is longer."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
