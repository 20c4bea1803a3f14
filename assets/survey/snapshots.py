"""Which snapshots partitions have, and whether a new label goes with theirs."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.asking.snapshot_label import require_label, require_one_spelling
from dtef_pipeline.survey.identity import SPACE
from resources.warehouse import Warehouse


def require_snapshot(warehouse: Warehouse, snapshot: str, keys: Sequence[str]) -> None:
    """Raises ConfigError for a label that is new to these partitions and not allowed, or differs from one of theirs in capitals alone."""
    stored = {label for key in keys for label in warehouse.values("predictions", "snapshot", **SPACE.levels(key))}
    require_one_spelling(require_label(snapshot, stored), stored)
