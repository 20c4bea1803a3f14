"""Names in natural order: `model-2` before `model-10`."""

from __future__ import annotations

import re

_RUN_OF_DIGITS = re.compile("([0-9]+)")


def natural_order(name: str) -> tuple[list[tuple[str, int]], str]:
    """Return the sort key of a name: letters without case, numbers by value. Names that differ only in case have a fixed order."""
    parts = _RUN_OF_DIGITS.split(name.casefold())
    words, numbers = parts[::2], [*map(int, (digits[-18:] for digits in parts[1::2])), 0]
    return list(zip(words, numbers, strict=True)), name
