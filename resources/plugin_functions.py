"""Point functions that other packages add by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from dtef_pipeline.errors import ConfigError

FUNCTION_GROUP = "dtef.rubric.functions"
"""Entry-point group of functions of (response, argument, context) that return a score from 0 to 1; an entry point's name is the function's
name."""


def load_plugin_functions() -> dict[str, Callable[..., Any]]:
    """Return all installed packages' functions by name. Raises ConfigError if one cannot be loaded."""
    return {point.name: _load_function(point.name, point.value, point.load) for point in entry_points(group=FUNCTION_GROUP)}


def _load_function(name: str, value: str, load: Callable[[], Any]) -> Callable[..., Any]:
    try:
        function = load()
    except Exception as error:
        raise ConfigError(
            f"the point function {name!r} of {value} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise ConfigError(f"the point function {name!r} of {value} is a {type(function).__name__}, not a function")
    result: Callable[..., Any] = function
    return result
