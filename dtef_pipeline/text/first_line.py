"""The beginning of a text, by which people know it again."""

from __future__ import annotations


def shorten_to_line(text: str, most: int = 70) -> str:
    """The text in one line of at most `most` characters, the last of which is `…` where more of it follows."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
