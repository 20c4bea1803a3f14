"""Checks whether the preference board includes all present votes."""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary

from resources.votes.vote_queries import count_votes_and_voids
from resources.votes.vote_store import VoteStore

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
