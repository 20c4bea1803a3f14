"""The rows of the preference board, as JSON can say them."""

from __future__ import annotations

import math
from typing import Any

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.preference.narrow_intervals import why_narrow
from resources.settings import Settings
from resources.table_reader import TableReader
from resources.warehouse import Warehouse

_SCORES_TABLE = "preference_scores"


def told_scores(settings: Settings, family: str | None, partition: str) -> list[dict[str, Any]]:
    """The rows of `preference_scores`, of one family if it is named, each with a `note` that says when its interval is too narrow.

    None where no table was made yet. Raises WarehouseError where there is one that cannot be read.
    """
    reader = TableReader(Warehouse(settings.warehouse))
    if not reader.warehouse.tables([_SCORES_TABLE]):
        return []
    rows = reader.rows(_SCORES_TABLE).to_pylist()
    if not rows and reader.left_out:
        raise WarehouseError(f"{_SCORES_TABLE} cannot be read: {'; '.join(reader.left_out.values())}")
    return [_told(row) for row in rows if row["partition"] == partition and family in (None, row["family"])]


def _told(row: dict[str, Any]) -> dict[str, Any]:
    finite = {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
    return {**finite, "note": why_narrow(row["reviewers"], row["effective_reviewers"], row["degrees"])}
