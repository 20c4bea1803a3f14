"""The drift settings of all families: the section `drift` of the file that DTEF_PANEL names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.documents import read_document
from dtef_pipeline.drift.settings import (
    DRIFT_SECTION,
    DriftSettings,
    load_drift_settings,
    read_panel,
    require_known_names,
)
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILIES, PANEL_KEYS, TABLES
from dtef_pipeline.family.record import Family
from dtef_pipeline.judging.judges import find_judging_model
from resources.model_catalog import load_known_models
from resources.settings import Settings, require_named_path
from resources.warehouse import Warehouse

Pairs = list[tuple[str, str]]
"""Names and variants of models."""


def panel_drift(settings: Settings, warehouse: Warehouse | None) -> DriftSettings:
    """Return the section, with defaults if it is missing. Without a `warehouse`, models with scores are ignored.

    Raises ConfigError if DTEF_PANEL names no file, or the section has a fault, or names a model that is neither a model nor a judge in any
    family's part of the panel, and has neither scores nor judged anchors.
    """
    drift = load_drift_section(settings)
    if settings.panel is not None and drift.names_models:
        models = load_known_models(settings, COMPUTED_MODELS)
        pairs, judges = list_panel_models(settings.panel, models), list_panel_judges(settings.panel, models)
        if warehouse is not None:
            pairs += [pair for family in FAMILIES for pair in list_family_scored_models(warehouse, family)]
            judges += [pair for family in FAMILIES for pair in list_family_judges(warehouse, family)]
        require_known_names(read_panel(settings.panel), drift, pairs, judges)
    return drift


def load_drift_section(settings: Settings) -> DriftSettings:
    """Return the section, without checking the models that it names."""
    if settings.panel is None:
        return DriftSettings()
    require_named_path("DTEF_PANEL", settings.panel)
    return load_drift_settings(settings.panel)


def list_panel_models(path: Path, models: Models) -> Pairs:
    """Return the models of a panel file, for all families. Skips unresolvable selectors: the schedule that uses them reports them."""
    return [(spec.name, spec.variant) for selector in _selectors(path) for spec in _resolve_or_skip(models, selector)]


def list_panel_judges(path: Path, models: Models) -> Pairs:
    """Return the judges of a panel file, for all families."""
    return [
        (spec.name, spec.variant) for selector in _find_judge_selectors(path) for spec in _resolve_or_skip(models, selector)
    ]


def _selectors(path: Path) -> Iterator[str]:
    for part in _iterate_sections(path):
        yield from _list_texts(part.get("models"))


def _find_judge_selectors(path: Path) -> Iterator[str]:
    """Yield the selectors of judges: of a single one in `judge`, of several in `judges`, APPROACH=MODEL each."""
    for part in _iterate_sections(path):
        yield from _list_texts([part.get("judge")])
        yield from (text.partition("=")[2] for text in _list_texts(part.get("judges")))


def _iterate_sections(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the panel file's top level, and its section of each family."""
    values = read_document(path, "panel file", [DRIFT_SECTION]).values
    yield from (part for part in (values, *(values.get(family.name) for family in FAMILIES)) if isinstance(part, dict))


def _list_texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _resolve_or_skip(models: Models, selector: str) -> tuple[ModelSpec, ...]:
    try:
        return models.resolve([selector])
    except ConfigError:
        return ()


def list_family_scored_models(warehouse: Warehouse, family: Family) -> Pairs:
    """Return names and variants of the models with scores in a family."""
    if not warehouse.values(family.scores_table, family.space.first):
        return []
    names = f"SELECT DISTINCT model, model_variant FROM {family.scores_table}"
    return warehouse.query(lambda connection: connection.execute(names).fetchall(), only=[family.scores_table])


def list_family_judges(warehouse: Warehouse, family: Family) -> Pairs:
    """Return names and variants of a family's judges of anchors: the judge's name, and its model's."""
    schema = TABLES[family.anchors].schema if family.anchors else None
    if schema is None:
        return []
    named = [name for name in ("judge", "judge_model") if name in schema.names]
    rows = warehouse.rows(family.anchors, columns=[*named, "judge_variant"]).to_pylist()
    return sorted(
        {(name, row["judge_variant"]) for row in rows for one in named for name in (row[one], find_judging_model(row[one]))}
    )


Section = TypeVar("Section")


def load_panel_section(settings: Settings, load: Callable[[Path], Section | None]) -> Section | None:
    """Return what `load` reads from the panel file, or None without a panel file or section.

    Raises ConfigError if DTEF_PANEL names no file, the file has an unknown top-level key, or the section has a fault.
    """
    if settings.panel is None:
        return None
    require_named_path("DTEF_PANEL", settings.panel)
    read_document(settings.panel, "panel file", PANEL_KEYS).mapping((), PANEL_KEYS)
    return load(settings.panel)
