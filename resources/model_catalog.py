"""The models known by name: the shipped ones, and those of DTEF_MODELS."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.asking.models import Models, load_models
from resources.settings import Settings, find_shipped, require_named_path


def load_known_models(settings: Settings, computed: Mapping[str, int | None]) -> Models:
    """Return all models and collections of the two files, and the `computed` models of a family (see `load_models`).

    Raises ConfigError if DTEF_MODELS names no file, or a file has a fault.
    """
    path = settings.models
    if path is not None:
        require_named_path("DTEF_MODELS", path)
    return load_models(find_shipped("models.yaml"), *([path] if path else []), computed=computed)
