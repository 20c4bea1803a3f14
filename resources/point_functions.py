"""Point functions with what they need of the outside world: a process for scripts, and the functions of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from resources.script_engine import ScriptEngine, has_script_engine

FUNCTION_GROUP = "dtef.rubric.functions"
"""Entry points of other packages: each a function of (response, argument, context) that returns a score from 0 to 1."""


@contextmanager
def evaluating(prepare: Callable[..., Any]) -> Iterator[Callable[[str, Any], Any]]:
    """`prepare` (the family's way to make a function ready) with an engine for scripts, where there is one, and the functions of other packages.

    The engine's process starts with the first script and ends with the context.
    """
    engine = ScriptEngine() if has_script_engine() else None
    try:
        yield lambda name, argument: prepare(name, argument, engine, added_functions())
    finally:
        if engine is not None:
            engine.close()


@cache
def added_functions() -> dict[str, Any]:
    """The functions that installed packages add, by name."""
    return {point.name: point.load() for point in entry_points(group=FUNCTION_GROUP)}
