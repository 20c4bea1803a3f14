"""Point functions with their outside resources: a process for scripts, and functions of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from resources.plugin_functions import load_plugin_functions
from resources.script_engine import ScriptEngine, has_script_engine


@contextmanager
def evaluating(prepare: Callable[..., Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Yield `prepare` (which makes a family's function ready) with an engine for scripts, if available, and the functions of other
    packages.

    The engine's process starts with the first script and ends with the context.
    """
    functions = load_plugin_functions()
    engine = ScriptEngine() if has_script_engine() else None
    try:
        yield lambda name, argument: prepare(name, argument, engine, functions)
    finally:
        if engine is not None:
            engine.close()
