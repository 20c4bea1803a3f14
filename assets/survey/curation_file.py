"""The curation file of this installation: the one that DTEF_BATTERIES names."""

from __future__ import annotations

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.curation import Curation, load_curation
from resources.settings import Settings


def known_curation(settings: Settings) -> Curation:
    """No correction without a file. Raises ConfigError when DTEF_BATTERIES names no file, or the file has a fault."""
    if settings.batteries is None:
        return Curation()
    if not settings.batteries.is_file():
        raise ConfigError(f"DTEF_BATTERIES names {settings.batteries}, which is not a file")
    return load_curation(settings.batteries)
