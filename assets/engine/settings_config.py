"""Dagster's run configuration of a stage, made from the settings of its family."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, create_model

from assets.stage.panel_drift import load_panel_section
from assets.stage.resources import Store
from dtef_pipeline.family.run_settings import FamilySettings, RunSettings, build_settings, load_panel_settings
from dtef_pipeline.member_docstrings import member_docstrings
from resources.settings import Settings

Result = dg.MaterializeResult[Any]


def build_stage_config(model: type[RunSettings], stage: str, names: Iterable[str]) -> type[dg.Config]:
    """The configuration of a stage: these settings, with their defaults and descriptions. What they may be is checked when the stage begins."""
    docs = member_docstrings(model)
    fields: dict[str, Any] = {
        name: (
            _simplify_type(model.model_fields[name].annotation),
            Field(default=_simplify_value(model.model_fields[name].default), description=docs.get(name)),
        )
        for name in names
    }
    return create_model(f"{stage}_config", __base__=dg.Config, **fields)


def takes_settings(
    model: type[FamilySettings], name: str, names: Iterable[str]
) -> Callable[[Callable[[dg.AssetExecutionContext, FamilySettings, Store], Result]], Callable[..., Result]]:
    """For a function of context, settings and store: the same as Dagster calls it, with these settings as its run configuration.

    Raises ConfigError where one of them is not allowed.
    """

    fields = tuple(names)

    def decorate(compute: Callable[[dg.AssetExecutionContext, FamilySettings, Store], Result]) -> Callable[..., Result]:
        def compute_with_config(
            context: dg.AssetExecutionContext, config: dg.Config, store: Store
        ) -> dg.MaterializeResult[Any]:
            return compute(context, build_settings(model, config.model_dump()), store)

        def compute_with_defaults(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
            return compute(context, model(), store)

        if not fields:  # Dagster knows no configuration without fields
            return compute_with_defaults
        compute_with_config.__annotations__["config"] = build_stage_config(model, name, fields)
        compute_with_config.__doc__ = compute.__doc__
        return compute_with_config

    return decorate


def _simplify_type(annotation: Any) -> Any:
    """The type in Dagster's terms: a part with members is a mapping."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return dict[str, Any]
    if origin is dict:
        return dict.__class_getitem__((str, _simplify_type(arguments[1])))
    if origin is list:
        return list.__class_getitem__(_simplify_type(arguments[0]))
    if origin is Literal:
        return str if all(isinstance(argument, str) for argument in arguments) else int
    if type(None) in arguments:
        return Union[tuple(_simplify_type(argument) for argument in arguments)]  # noqa: UP007 - the members are not known here
    return annotation


def _simplify_value(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def load_family_panel(settings: Settings, section: str, model: type[FamilySettings]) -> FamilySettings | None:
    """The settings of the section; None: there is no panel file, or it has no such section.

    Raises ConfigError when DTEF_PANEL names no file, or the section has a fault.
    """
    return load_panel_section(settings, partial(load_panel_settings, section=section, model=model))
