"""Known names: those that match patterns, the error about a pattern that matches none, and their natural order."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.number_words import list_first_names

_MOST = 8
_MAX_NEAR = 3
_SIMILARITY = 0.5
"""Of names that are near, from 0 to 1, as difflib measures it."""


def find_nearest(word: str, choices: Iterable[str]) -> list[str]:
    """Return at most three known names: those of which the word is a part (`b` of `a/b`), or else those most similar to it."""
    names = sorted(choices)
    parts = [name for name in names if word in name.split("/")][:_MAX_NEAR]
    return parts or difflib.get_close_matches(word, names, _MAX_NEAR, _SIMILARITY)


def suggest_nearest(word: str, choices: Iterable[str]) -> str:
    """`Did you mean gpt-4.1-mini, gpt-5.4-mini or gpt-4.1? `; empty if no known name is similar to the word."""
    matches = find_nearest(word, choices)
    names = " or ".join(filter(None, [", ".join(matches[:-1]), *matches[-1:]]))
    return f"Did you mean {names}? " if names else ""


def list_nearest(word: str, choices: Iterable[str], limit: int = _MOST) -> str:
    """List the known names most similar to the word, then some others: `gpt-4.1, grok-4.20, ... and 22 more`, or `none`; at
    most `limit` names.
    """
    names = sorted(choices)
    matches = find_nearest(word, names)
    names = [*matches, *(name for name in names if name not in matches)]
    return list_first_names(names, limit) or "none"


def filter_by_patterns(names: Sequence[str], patterns: Sequence[str], given_as: str) -> list[str]:
    """Return the names that match any of the patterns, in their order, or all if there are no patterns. Raises ConfigError for a pattern
    without match.

    `given_as`: what the error calls the patterns. The error omits the `*/` of a pattern that matches at any level.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(f"{given_as} {pattern.removeprefix('*/')!r} matches none; known: {list_nearest(pattern, names)}")
    return [name for name in names if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


_RUN_OF_DIGITS = re.compile("([0-9]+)")


def natural_order(name: str) -> tuple[list[tuple[str, int]], str]:
    """Return the sort key of a name: letters without case, numbers by value. Names that differ only in case have a fixed order."""
    parts = _RUN_OF_DIGITS.split(name.casefold())
    words, numbers = parts[::2], [*map(int, (digits[-18:] for digits in parts[1::2])), 0]
    return list(zip(words, numbers, strict=True)), name
