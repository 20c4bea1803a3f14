"""Which snapshots partitions have, and whether a new label goes with theirs."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.asking.snapshot_label import require_one_spelling
from dtef_pipeline.survey.identity import SPACE
from resources.warehouse import Warehouse


def require_spelling_of(warehouse: Warehouse, snapshot: str, keys: Sequence[str]) -> None:
    """Raises ConfigError where the label differs in capitals alone from one under which these partitions have predictions."""
    stored = {label for key in keys for label in warehouse.values("predictions", "snapshot", **SPACE.levels(key))}
    require_one_spelling(snapshot, stored)
