"""By which settings the scores of families are watched for drift: the section `drift` of the file that DTEF_PANEL names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.documents import read_document
from dtef_pipeline.drift.panel_section import DRIFT_SECTION, load_drift_settings, names_models, require_known_in_section
from dtef_pipeline.drift.settings import DriftSettings
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILIES, Family
from resources.known_models import known_models
from resources.settings import Settings
from resources.table_reader import TableReader

Pairs = list[tuple[str, str]]
"""Names and variants of models."""


def panel_drift(settings: Settings, reader: TableReader) -> DriftSettings:
    """The section; its defaults where there is none. Raises ConfigError when DTEF_PANEL names no file, or the section has a fault, or names
    a model that no family's part of the panel asks and that has no scores."""
    if settings.panel is None:
        return DriftSettings()
    drift = drift_section(settings)
    if names_models(drift):
        models = known_models(settings, COMPUTED_MODELS)
        require_known_in_section(
            settings.panel, drift, asked_by_sections(settings.panel, models), lambda: scored_anywhere(reader)
        )
    return drift


def drift_section(settings: Settings) -> DriftSettings:
    """The section as it stands, without a look for the models that it names."""
    if settings.panel is None:
        return DriftSettings()
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    return load_drift_settings(settings.panel)


def asked_by_sections(path: Path, models: Models) -> Pairs:
    """The models that a panel file asks, for any family; what cannot be resolved is told of by the schedule that asks it."""
    return [(spec.name, spec.variant) for selector in _selectors(path) for spec in _resolved(models, selector)]


def _selectors(path: Path) -> Iterator[str]:
    values = read_document(path, "panel file", [DRIFT_SECTION]).values
    for part in (values, *(values.get(family.name) for family in FAMILIES)):
        chosen = part.get("models") if isinstance(part, dict) else None
        yield from (one for one in (chosen if isinstance(chosen, list) else ()) if isinstance(one, str))


def _resolved(models: Models, selector: str) -> tuple[ModelSpec, ...]:
    try:
        return models.resolve([selector])
    except ConfigError:
        return ()


def scored_anywhere(reader: TableReader) -> Pairs:
    """Names and variants of the models that any family has scores of."""
    return [pair for family in FAMILIES for pair in scored_in(reader, family)]


def scored_in(reader: TableReader, family: Family) -> Pairs:
    """Names and variants of the models that a family has scores of."""
    if not reader.warehouse.values(family.scored, family.space.first):
        return []
    names = f"SELECT DISTINCT model, model_variant FROM {family.scored}"
    return reader.query(lambda connection: connection.execute(names).fetchall(), only=[family.scored])
