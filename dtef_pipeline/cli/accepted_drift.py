"""`--since` of `dtef drift`: from which date on snapshots count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError


def options_since(
    options: WatchOptions,
    since: Sequence[str],
    scored: Callable[[], Iterable[tuple[str, str]]],
    judges: Callable[[], Iterable[tuple[str, str]]] = tuple,
) -> WatchOptions:
    """The settings with the dates that a command gives, `[MODEL=]DATE` each, in place of the panel's; as they are without one.

    `scored`: finds names and variants of the models with scores; `judges`: of those that were shown stored answers again. Raises ConfigError
    for what is no date, and for a model that is neither.
    """
    if not since:
        return options
    if nameless := [given for given in since if given.startswith("=")]:
        raise ConfigError(f"since {nameless[0]!r}: allowed: MODEL=DATE, or DATE for all models")
    options = replace(options, since={model: day for model, _, day in (given.rpartition("=") for given in since)})
    options.require_known(scored(), judges())
    return options
