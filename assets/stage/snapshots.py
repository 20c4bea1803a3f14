"""Checks of new snapshot labels against those of partitions."""

from collections.abc import Sequence

from dtef_pipeline.asking.snapshot_label import require_label, require_one_spelling
from dtef_pipeline.keys import Space
from resources.warehouse import Warehouse


def require_snapshot(warehouse: Warehouse, table: str, space: Space, keys: Sequence[str], snapshot: str) -> None:
    """Raise ConfigError for a label that is new to these partitions and not allowed, or differs from one of theirs only in case.

    `table`: the partitions' table of responses.
    """
    labels = {label for key in keys for label in warehouse.values(table, "snapshot", **space.levels(key))}
    require_one_spelling(require_label(snapshot, labels), labels)
