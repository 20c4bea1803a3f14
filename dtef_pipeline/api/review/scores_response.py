"""The rows of the preference board as JSON values."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.api.review.votes_version import compute_current_version, find_stale_reason
from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import WarehouseError
from resources.settings import Settings
from resources.warehouse import Warehouse

_SCORES_TABLE = "preference_scores"
_SCORES_FOLLOW = "Dagster computes them, usually within 15 minutes"


def scores_response(services: Services, family: str | None, partition: str) -> dict[str, Any]:
    """Return the rows of `preference_scores`, of one family if given, each with a `note` on the limit of its interval.

    `votes_version`: version of the votes that count now; `note`: says if the rows were computed from others. Empty without a table. Raises
    WarehouseError for an unreadable table.
    """
    rows, now = _read_score_rows(services.settings), compute_current_version(services.votes)
    reason = find_stale_reason([row["votes_version"] for row in rows], now)
    scores = [row for row in rows if row["partition"] == partition and family in (None, row["family"])]
    return {"scores": scores, "votes_version": now, "note": f"{reason}; {_SCORES_FOLLOW}" if reason else None}


def _read_score_rows(settings: Settings) -> list[dict[str, Any]]:
    warehouse = Warehouse(settings.warehouse)
    if not warehouse.tables([_SCORES_TABLE]):
        return []
    rows: list[dict[str, Any]] = warehouse.rows(_SCORES_TABLE).to_pylist()
    if not rows and warehouse.skipped:
        raise WarehouseError(f"{_SCORES_TABLE} cannot be read: {'; '.join(warehouse.skipped.values())}")
    return rows
