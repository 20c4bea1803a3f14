"""Options of a family's commands, built from its run settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from dtef_pipeline.documents import member_docstrings
from dtef_pipeline.family.run_settings import Door, RunSettings, list_settings_at, option_name, setting


def settings_options(
    model: type[RunSettings],
    chosen: Sequence[str] | None = None,
    callbacks: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> list[click.Option]:
    """Return the options of the `chosen` settings, by default of all that a command accepts. `callbacks`: click's callbacks by setting."""
    descriptions = member_docstrings(model)
    names = list_settings_at(model, Door.COMMAND) if chosen is None else chosen
    return [_build_option(model, name, descriptions.get(name, ""), callbacks.get(name)) for name in names]


def _build_option(model: type[RunSettings], name: str, description: str, callback: Callable[..., Any] | None) -> click.Option:
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
