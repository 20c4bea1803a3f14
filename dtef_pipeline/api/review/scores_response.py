"""The rows of the preference board as JSON values, and whether they include all present votes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import WarehouseError
from resources.settings import Settings
from resources.votes.vote_queries import count_votes_and_voids
from resources.votes.vote_store import VoteStore

_SCORES_TABLE = "preference_scores"
_SCORES_FOLLOW = "Dagster computes them, usually within 15 minutes"
_known: WeakKeyDictionary[VoteStore, tuple[tuple[int, int], str]] = WeakKeyDictionary()


def compute_current_version(store: VoteStore) -> str:
    """Return `compute_votes_version` of all votes in the store that count.

    Votes and voids are append-only, so it is recomputed when their numbers change.
    """
    from dtef_pipeline.preference.vote_fit import compute_votes_version
    from dtef_pipeline.preference.votes import REVIEWER_KINDS
    from resources.votes.vote_store import read_player_votes

    numbers = count_votes_and_voids(store.database)
    before, version = _known.get(store, (None, ""))
    if before != numbers:
        version = compute_votes_version(
            [vote for kind in REVIEWER_KINDS for vote in read_player_votes(store, reviewer_kind=kind)]
        )
        _known[store] = numbers, version
    return version


def find_stale_reason(versions: Collection[str | None], now: str) -> str | None:
    """Return a note on a board whose rows have these versions of votes; None: it is up to date, or there are no votes.

    A version covers the votes of all families.
    """
    if not versions:
        return None if now.startswith("0-") else "no scores have been computed from the votes yet"
    reason = "votes were added or voided after these scores were computed, possibly for another family"
    return None if set(versions) <= {now, None} else reason


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
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    if not warehouse.tables([_SCORES_TABLE]):
        return []
    rows: list[dict[str, Any]] = warehouse.rows(_SCORES_TABLE).to_pylist()
    if not rows and warehouse.skipped:
        raise WarehouseError(f"{_SCORES_TABLE} cannot be read: {'; '.join(warehouse.skipped.values())}")
    return rows
