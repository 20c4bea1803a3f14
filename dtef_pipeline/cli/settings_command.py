"""Commands whose options are built from the settings of a family's runs. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from dtef_pipeline.family.run_settings import RunSettings


class RunFlags(NamedTuple):
    """Options of a run that are not settings."""

    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    max_tokens: tuple[str, ...] = ()
    """Budgets, [ROLE=|MODEL=]AMOUNT each."""
    first: str = "ask"
    """The first stage of the run."""
    no_roll_ups: bool = False


def settings_options(
    model: type[RunSettings],
    chosen: Sequence[str] | None = None,
    callbacks: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> list[click.Option]:
    """Return the options of the `chosen` settings, by default of all that a command accepts. `callbacks`: click's callbacks by setting."""
    from dtef_pipeline.documents import member_docstrings
    from dtef_pipeline.family.run_settings import Door, list_settings_at

    descriptions = member_docstrings(model)
    names = list_settings_at(model, Door.COMMAND) if chosen is None else chosen
    return [_build_option(model, name, descriptions.get(name, ""), callbacks.get(name)) for name in names]


def _build_option(model: type[RunSettings], name: str, description: str, callback: Callable[..., Any] | None) -> click.Option:
    from dtef_pipeline.family.run_settings import option_name, setting

    field, declaration = model.model_fields[name], setting(model, name)
    flag = option_name(model, name)
    kind = _find_value_type(field)
    if kind is bool:
        return click.Option([flag, name], is_flag=True, callback=callback, help=" ".join(description.split()))
    multiple = get_origin(field.annotation) is list
    default = None if multiple or field.default is None else field.default
    help = " ".join([*description.split(), *(["May be repeated."] if multiple else [])])
    if declaration.unset:
        help += f"  [default: {declaration.unset}]"
    return click.Option(
        [flag, name],
        multiple=multiple,
        type=_choose_click_type(field, kind, is_file=declaration.is_file),
        default=None if multiple else default,
        show_default=default is not None,
        metavar=declaration.metavar or None,
        callback=callback,
        help=help,
    )


def _find_value_type(field: FieldInfo) -> Any:
    """Return the type of one value: the member type of a list, or an optional type without None."""
    annotation = field.annotation
    if get_origin(annotation) is list:
        return get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return annotation
    return next((member for member in get_args(annotation) if member is not type(None)), annotation)


def _choose_click_type(field: FieldInfo, kind: Any, *, is_file: bool) -> Any:
    bounds = {name: getattr(bound, name) for bound in field.metadata for name in ("ge", "le") if hasattr(bound, name)}
    if is_file:
        return click.Path(exists=True, dir_okay=False)
    if get_origin(kind) is Literal:
        return click.Choice([str(choice) for choice in get_args(kind)])
    if kind is int:
        return click.IntRange(bounds.get("ge"), bounds.get("le"))
    return click.FloatRange(bounds.get("ge"), bounds.get("le")) if kind is float else str


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
