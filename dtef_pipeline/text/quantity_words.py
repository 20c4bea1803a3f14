"""Numbers of things, in words for people."""

from __future__ import annotations

from collections.abc import Sequence


def format_count(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`, `1,200 batteries`: `noun` is the singular of a word, or of several words, as in `format_plural`."""
    return f"{number:,} {noun if number == 1 else format_plural(noun)}"


def format_plural(noun: str) -> str:
    """`pairs`, `days`, `batteries`: of a word, or of several words, whose plural takes an s."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def list_first_names(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"
