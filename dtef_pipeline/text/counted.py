"""Numbers of things, in words for people."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`, `1,200 pairs`: `noun` is the singular of a word whose plural takes an s, or of several words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def and_more(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"
