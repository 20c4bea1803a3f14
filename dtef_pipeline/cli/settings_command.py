"""Commands whose options are the settings of a family's runs, and their values. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.core import ParameterSource


class RunFlags(NamedTuple):
    """Options of a run that are not settings."""

    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    max_tokens: tuple[str, ...] = ()
    """Budgets, [ROLE=|MODEL=]AMOUNT each."""
    first: str = "ask"
    """The first stage of the run."""
    no_roll_ups: bool = False


class TakesSettings(click.Command):
    """A command with the options of settings before its own. They are built on first use: `dtef --help` needs none."""

    def __init__(
        self,
        *args: Any,
        settings: str,
        chosen: Sequence[str] | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        **named: Any,
    ) -> None:
        """`settings`: module and class, such as `dtef_pipeline.qa.settings.QaSettings`. For the others see `settings_options`."""
        self._settings, self._chosen, self._callbacks = settings, chosen, callbacks or {}
        super().__init__(*args, **named)

    @property
    def params(self) -> list[click.Parameter]:
        if self._settings:
            from dtef_pipeline.cli.settings_options import settings_options

            module, _, name = self._settings.rpartition(".")
            self._settings = ""
            model = getattr(import_module(module), name)
            self._own[:0] = settings_options(model, self._chosen, self._callbacks)
        return self._own

    @params.setter
    def params(self, own: list[click.Parameter]) -> None:
        self._own = own


def split_given(options: dict[str, Any]) -> tuple[dict[str, Any], RunFlags]:
    """Return a command's given settings, without defaults, and its flags."""
    flags = {name: options.pop(name) for name in RunFlags._fields if name in options}
    source = click.get_current_context().get_parameter_source
    settings = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value not in ((), None) and source(name) is not ParameterSource.DEFAULT
    }
    return settings, RunFlags(**flags)
