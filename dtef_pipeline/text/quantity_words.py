"""Counts of things in words."""

from __future__ import annotations

from collections.abc import Sequence


def format_count(number: int, noun: str) -> str:
    """Return `1 pair`, `2 pairs`, `1,200 batteries`. `noun` is singular and may have several words, see `format_plural`."""
    return f"{number:,} {noun if number == 1 else format_plural(noun)}"


def format_plural(noun: str) -> str:
    """Return `pairs`, `days`, `batteries`: the plural of one or several words that take an s."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def list_first_names(names: Sequence[str], limit: int, separator: str = ", ") -> str:
    """List the first `limit` names and the number of others: `a, b and 3 more`."""
    suffix = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{separator.join(names[:limit])}{suffix}"
