"""Regular expressions as JavaScript has them, without flags but `i`, searched by the package `regex` within a time limit."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from dtef_pipeline.rubric.javascript_characters import capitals, code_units
from dtef_pipeline.rubric.javascript_reader import read_pattern
from dtef_pipeline.rubric.javascript_syntax import BadPattern
from dtef_pipeline.rubric.javascript_writer import written_for_python

LONGEST_SEARCH = 1.0
"""Seconds after which the search for one pattern in one text is given up."""


class SearchTooLong(Exception):
    """A pattern was not decided within the time limit."""


class CompiledPattern(NamedTuple):
    """A pattern that is ready to be searched for."""

    machine: Any
    """A compiled pattern of the package `regex`."""
    ignore_case: bool

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text; SearchTooLong when that takes longer than `LONGEST_SEARCH`."""
        try:
            return self.machine.search(prepared(text, self.ignore_case), timeout=LONGEST_SEARCH) is not None
        except (TimeoutError, MemoryError) as error:
            raise SearchTooLong from error


@functools.lru_cache(maxsize=256)
def prepared(text: str, ignore_case: bool) -> str:
    """The text as it is searched: one character per UTF-16 code unit, in capitals where case does not matter."""
    units = code_units(text)
    return capitals(units) if ignore_case else units


def compiled(pattern: str, ignore_case: bool = False) -> CompiledPattern:
    """The pattern, ready to be searched for; BadPattern where JavaScript would not take it. Compiled once per process."""
    found = _compiled(pattern, ignore_case)
    if isinstance(found, str):
        raise BadPattern(found)
    return found


def pattern_fault(pattern: str, ignore_case: bool = False) -> str | None:
    """Why a text is no valid pattern of JavaScript's; None: it is one."""
    found = _compiled(pattern, ignore_case)
    return found if isinstance(found, str) else None


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str, ignore_case: bool) -> CompiledPattern | str:
    import regex

    try:
        written = written_for_python(read_pattern(pattern), ignore_case)
        return CompiledPattern(regex.compile(written, regex.VERSION0 | regex.ASCII), ignore_case)
    except BadPattern as fault:
        return str(fault)
    except (RecursionError, MemoryError, OverflowError, regex.error) as fault:
        return f"it is too large to be searched for ({type(fault).__name__})"
