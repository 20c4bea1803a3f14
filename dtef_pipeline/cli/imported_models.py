"""Models whose responses were made elsewhere, as commands that would ask them see them."""

from __future__ import annotations

from collections.abc import Iterable

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.askable import refuse_absent_imported
from resources.responses.store import ResponseStore
from resources.settings import Settings


def require_imported(specs: Iterable[ModelSpec], snapshot: str, settings: Settings) -> None:
    """Raises ConfigError for a model of which nothing was imported in the snapshot, as where its name is misspelled."""
    if imported := [spec for spec in specs if spec.is_imported]:
        with ResponseStore(settings.responses_url) as store:
            refuse_absent_imported(imported, snapshot, store)
