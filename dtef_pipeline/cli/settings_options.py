"""The options of a family's commands, made from the settings of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from dtef_pipeline.cli.options import options
from dtef_pipeline.family.run_settings import Door, RunSettings, setting, settings_at
from dtef_pipeline.member_docstrings import member_docstrings


class RunFlags(NamedTuple):
    """What a command that runs stages is given beside the settings."""

    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    """Budgets, [ROLE=|MODEL=]AMOUNT each."""
    first: str = "ask"
    """The stage that the run begins with."""
    no_roll_ups: bool = False


def settings_options(
    model: type[RunSettings], names: Iterable[str] | None = None, **callbacks: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of these settings; None: of all that a command may give. `callbacks`: by setting, click's callback."""
    described = member_docstrings(model)
    chosen = settings_at(model, Door.COMMAND) if names is None else names
    return options(*(_option(model, name, described.get(name, ""), callbacks.get(name)) for name in chosen))


def split_given(given: dict[str, Any]) -> tuple[dict[str, Any], RunFlags]:
    """What a command is given: the settings that have a value, and what stands beside them."""
    beside = {name: given.pop(name) for name in RunFlags._fields if name in given}
    settings = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value not in ((), None)
    }
    return settings, RunFlags(**beside)


def _option(model: type[RunSettings], name: str, described: str, callback: Callable[..., Any] | None) -> Any:
    field, said = model.model_fields[name], setting(model, name)
    flag = said.option or f"--{name.replace('_', '-')}"
    kind = _kind(field)
    if kind is bool:
        return click.option(flag, name, is_flag=True, callback=callback, help=" ".join(described.split()))
    multiple = get_origin(field.annotation) is list
    default = None if multiple or field.default is None else field.default
    help = " ".join([*described.split(), *(["May be repeated."] if multiple else [])])
    if said.unset:
        help += f"  [default: {said.unset}]"
    return click.option(
        flag,
        name,
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
