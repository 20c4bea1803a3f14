"""Whether the preference board is made of the votes that there are now."""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary

from resources.votes.vote_queries import count_votes_and_voids
from resources.votes.vote_store import VoteStore

_known: WeakKeyDictionary[VoteStore, tuple[tuple[int, int], str]] = WeakKeyDictionary()


def compute_current_version(store: VoteStore) -> str:
    """`compute_votes_version` of all that count in the store.

    Votes and voids are only ever added, so it is made anew where their numbers are others.
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
    """What is to be known of a board whose rows were made of votes of these versions; None: these are the votes of now, or there are none.

    A version is of the votes of all families.
    """
    if not versions:
        return None if now.startswith("0-") else "no scores were made of the votes yet"
    reason = "votes have come or were voided since these scores were made, perhaps of another family"
    return None if set(versions) <= {now, None} else reason
