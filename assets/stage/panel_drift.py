"""By which settings the scores of families are watched for drift: the section `drift` of the file that DTEF_PANEL names."""

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
    """The section; its defaults where there is none. `warehouse`: None: models with scores are not looked for.

    Raises ConfigError when DTEF_PANEL names no file, or the section has a fault, or names a model that no family's part of the panel asks, or
    names as a judge, and that has neither scores nor judged stored answers.
    """
    drift = load_drift_section(settings)
    if settings.panel is not None and drift.names_models:
        models = load_known_models(settings, COMPUTED_MODELS)
        asked, judges = list_panel_models(settings.panel, models), list_panel_judges(settings.panel, models)
        if warehouse is not None:
            asked += [pair for family in FAMILIES for pair in list_family_scored_models(warehouse, family)]
            judges += [pair for family in FAMILIES for pair in list_family_judges(warehouse, family)]
        require_known_names(read_panel(settings.panel), drift, asked, judges)
    return drift


def load_drift_section(settings: Settings) -> DriftSettings:
    """The section as it stands, without a look for the models that it names."""
    if settings.panel is None:
        return DriftSettings()
    require_named_path("DTEF_PANEL", settings.panel)
    return load_drift_settings(settings.panel)


def list_panel_models(path: Path, models: Models) -> Pairs:
    """The models that a panel file asks, for any family. Skips selectors that cannot be resolved: the schedule that uses them reports them."""
    return [(spec.name, spec.variant) for selector in _selectors(path) for spec in _resolve_or_skip(models, selector)]


def list_panel_judges(path: Path, models: Models) -> Pairs:
    """The models that a panel file names as judges, for any family."""
    return [
        (spec.name, spec.variant) for selector in _find_judge_selectors(path) for spec in _resolve_or_skip(models, selector)
    ]


def _selectors(path: Path) -> Iterator[str]:
    for part in _iterate_sections(path):
        yield from _list_texts(part.get("models"))


def _find_judge_selectors(path: Path) -> Iterator[str]:
    """Of one judge its selector, `judge`; of several, `judges`, APPROACH=MODEL each."""
    for part in _iterate_sections(path):
        yield from _list_texts([part.get("judge")])
        yield from (text.partition("=")[2] for text in _list_texts(part.get("judges")))


def _iterate_sections(path: Path) -> Iterator[Mapping[str, Any]]:
    """The panel file itself, and its section of each family."""
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
    """Names and variants of the models that a family has scores of."""
    if not warehouse.values(family.scored, family.space.first):
        return []
    names = f"SELECT DISTINCT model, model_variant FROM {family.scored}"
    return warehouse.query(lambda connection: connection.execute(names).fetchall(), only=[family.scored])


def list_family_judges(warehouse: Warehouse, family: Family) -> Pairs:
    """Names and variants of the judges that a family has shown stored answers again: the name of a judge, and that of its model."""
    schema = TABLES[family.judged_again].schema if family.judged_again else None
    if schema is None:
        return []
    named = [name for name in ("judge", "judge_model") if name in schema.names]
    rows = warehouse.rows(family.judged_again, columns=[*named, "judge_variant"]).to_pylist()
    return sorted(
        {(name, row["judge_variant"]) for row in rows for one in named for name in (row[one], find_judging_model(row[one]))}
    )


Section = TypeVar("Section")


def load_panel_section(settings: Settings, load: Callable[[Path], Section | None]) -> Section | None:
    """What `load` reads from the panel file; None: there is no panel file, or it has no such section.

    Raises ConfigError when DTEF_PANEL names no file, the file has a key at its top that nothing reads, or the section has a fault.
    """
    if settings.panel is None:
        return None
    require_named_path("DTEF_PANEL", settings.panel)
    read_document(settings.panel, "panel file", PANEL_KEYS).mapping((), PANEL_KEYS)
    return load(settings.panel)
