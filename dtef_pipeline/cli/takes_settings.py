"""Commands whose options are the settings of a family's runs, and what they are given. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from dtef_pipeline.family.run_settings import Door, RunSettings, setting, settings_at
from dtef_pipeline.member_docstrings import member_docstrings


def settings_options(
    model: type[RunSettings],
    chosen: Sequence[str] | None = None,
    callbacks: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> list[click.Option]:
    """The options of these settings; None: of all that a command may give. `callbacks`: by setting, click's callback."""
    described = member_docstrings(model)
    names = settings_at(model, Door.COMMAND) if chosen is None else chosen
    return [_option(model, name, described.get(name, ""), callbacks.get(name)) for name in names]


def _option(model: type[RunSettings], name: str, described: str, callback: Callable[..., Any] | None) -> click.Option:
    field, said = model.model_fields[name], setting(model, name)
    flag = said.option or f"--{name.replace('_', '-')}"
    kind = _kind(field)
    if kind is bool:
        return click.Option([flag, name], is_flag=True, callback=callback, help=" ".join(described.split()))
    multiple = get_origin(field.annotation) is list
    default = None if multiple or field.default is None else field.default
    help = " ".join([*described.split(), *(["May be repeated."] if multiple else [])])
    if said.unset:
        help += f"  [default: {said.unset}]"
    return click.Option(
        [flag, name],
        multiple=multiple,
        type=_click_type(field, kind, is_file=said.is_file),
        default=None if multiple else default,
        show_default=default is not None,
        metavar=said.metavar or None,
        callback=callback,
        help=help,
    )


def _kind(field: FieldInfo) -> Any:
    """What one value is: of a list its members, of an optional one what it is where it is given."""
    annotation = field.annotation
    if get_origin(annotation) is list:
        return get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return annotation
    return next((one for one in get_args(annotation) if one is not type(None)), annotation)


def _click_type(field: FieldInfo, kind: Any, *, is_file: bool) -> Any:
    bounds = {name: getattr(one, name) for one in field.metadata for name in ("ge", "le") if hasattr(one, name)}
    if is_file:
        return click.Path(exists=True, dir_okay=False)
    if get_origin(kind) is Literal:
        return click.Choice([str(one) for one in get_args(kind)])
    if kind is int:
        return click.IntRange(bounds.get("ge"), bounds.get("le"))
    return click.FloatRange(bounds.get("ge"), bounds.get("le")) if kind is float else str


class RunFlags(NamedTuple):
    """What a command that runs stages is given beside the settings."""

    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    """Budgets, [ROLE=|MODEL=]AMOUNT each."""
    first: str = "ask"
    """The stage that the run begins with."""
    no_roll_ups: bool = False


class TakesSettings(click.Command):
    """A command with the options of settings before its own. They are made when they are first looked at: `dtef --help` needs none."""

    def __init__(
        self,
        *given: Any,
        settings: str,
        chosen: Sequence[str] | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        **named: Any,
    ) -> None:
        """`settings`: module and class, such as `dtef_pipeline.qa.settings.QaSettings`; `chosen`: as of `settings_options`; `callbacks`: by
        setting, click's callback."""
        self._settings, self._chosen, self._callbacks = settings, chosen, callbacks or {}
        super().__init__(*given, **named)

    @property
    def params(self) -> list[click.Parameter]:
        if self._settings:
            from dtef_pipeline.cli.takes_settings import settings_options

            module, _, name = self._settings.rpartition(".")
            self._settings = ""
            model = getattr(import_module(module), name)
            self._own[:0] = settings_options(model, self._chosen, self._callbacks)
        return self._own

    @params.setter
    def params(self, own: list[click.Parameter]) -> None:
        self._own = own


def split_given(given: dict[str, Any]) -> tuple[dict[str, Any], RunFlags]:
    """What a command is given: the settings that have a value, and what stands beside them."""
    beside = {name: given.pop(name) for name in RunFlags._fields if name in given}
    settings = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value not in ((), None)
    }
    return settings, RunFlags(**beside)
