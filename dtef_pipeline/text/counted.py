"""Numbers of things, in words for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`, `1,200 pairs`: `noun` is the singular of a word whose plural takes an s, or of several words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
