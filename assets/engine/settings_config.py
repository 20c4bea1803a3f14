"""Dagster's run configuration of a stage, built from its family's settings."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, create_model

from assets.stage.family_drift import load_panel_section
from assets.stage.resources import Store
from dtef_pipeline.documents import member_docstrings
from dtef_pipeline.family.run_settings import FamilySettings, RunSettings, build_settings, load_panel_settings
from resources.settings import Settings

Result = dg.MaterializeResult[Any]


def build_stage_config(model: type[RunSettings], stage: str, names: Iterable[str]) -> type[dg.Config]:
    """Return a stage's configuration: these settings, with defaults and descriptions. Values are validated when the stage begins."""
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
    """Convert a function of context, settings and store to one for Dagster, with these settings as run configuration.

    Calls raise ConfigError for an invalid setting.
    """

    fields = tuple(names)

    def decorate(compute: Callable[[dg.AssetExecutionContext, FamilySettings, Store], Result]) -> Callable[..., Result]:
        def compute_with_config(
            context: dg.AssetExecutionContext, config: dg.Config, store: Store
        ) -> dg.MaterializeResult[Any]:
            return compute(context, build_settings(model, config.model_dump()), store)

        def compute_with_defaults(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
            return compute(context, model(), store)

        if not fields:  # Dagster does not allow an empty configuration
            return compute_with_defaults
        compute_with_config.__annotations__["config"] = build_stage_config(model, name, fields)
        compute_with_config.__doc__ = compute.__doc__
        return compute_with_config

    return decorate


def _simplify_type(annotation: Any) -> Any:
    """Return the type in Dagster's terms: a part with members is a mapping."""
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
    """Return the settings of the section, or None without a panel file or section.

    Raises ConfigError if DTEF_PANEL names no file, or the section has a fault.
    """
    return load_panel_section(settings, partial(load_panel_settings, section=section, model=model))
