"""The curation file of this installation: the one that DTEF_BATTERIES names."""

from __future__ import annotations

from collections.abc import Collection

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.curation import Curation, load_curation
from dtef_pipeline.survey.identity import SPACE
from resources.settings import Settings
from resources.warehouse import Warehouse


def known_curation(settings: Settings) -> Curation:
    """No correction without a file. Raises ConfigError when DTEF_BATTERIES names no file, or the file has a fault."""
    if settings.batteries is None:
        return Curation()
    if not settings.batteries.is_file():
        raise ConfigError(f"DTEF_BATTERIES names {settings.batteries}, which is not a file")
    return load_curation(settings.batteries)


def rows_of_no_round(curation: Curation, warehouse: Warehouse, arriving: Collection[str] = ()) -> list[str]:
    """A line for each round that the file names and that is neither in the warehouse nor `arriving`: to warn of, since it may be to come."""
    return curation.unknown_rounds({*warehouse.values("survey_responses", SPACE.first), *arriving}) if curation.rows else []
