"""Models whose responses were made elsewhere, as commands that would ask them see them."""

from __future__ import annotations

from collections.abc import Iterable

from dtef_pipeline.asking.models import IMPORTED, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.nearest import nearest
from resources.responses.store import ResponseStore
from resources.settings import Settings


def require_imported(specs: Iterable[ModelSpec], snapshot: str, settings: Settings) -> None:
    """Raises ConfigError for a model of which nothing was imported in the snapshot, as where its name is misspelled."""
    if not (imported := [spec for spec in specs if spec.is_imported]):
        return
    with ResponseStore(settings.responses_url) as store:
        for spec in imported:
            if not store.has(spec.variant, snapshot):
                known = [one.name for one in store.models(snapshot) if one.variant.startswith(IMPORTED)]
                raise ConfigError(
                    f"model {spec.name}: no responses of it were imported in snapshot {snapshot!r}; there are: {nearest(spec.name, known)}; "
                    "`dtef responses import FILE --suite SUITE` adds some"
                )
