"""Whether the preference board is made of the votes that there are now."""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary

from resources.votes.vote_queries import numbers_of_votes
from resources.votes.vote_store import VoteStore

_known: WeakKeyDictionary[VoteStore, tuple[tuple[int, int], str]] = WeakKeyDictionary()


def version_of_votes_now(store: VoteStore) -> str:
    """`version_of_votes` of all that count in the store.

    Votes and voids are only ever added, so it is made anew where their numbers are others.
    """
    from dtef_pipeline.preference.stored_votes import version_of_votes
    from dtef_pipeline.preference.votes import REVIEWER_KINDS
    from resources.votes.vote_store import votes_of_store

    numbers = numbers_of_votes(store.database)
    before, found = _known.get(store, (None, ""))
    if before != numbers:
        found = version_of_votes([vote for kind in REVIEWER_KINDS for vote in votes_of_store(store, reviewer_kind=kind)])
        _known[store] = numbers, found
    return found


def why_not_of_now(versions: Collection[str | None], now: str) -> str | None:
    """What is to be known of a board whose rows were made of votes of these versions; None: these are the votes of now, or there are none.

    A version is of the votes of all families.
    """
    if not versions:
        return None if now.startswith("0-") else "no scores were made of the votes yet"
    changed = "votes have come or were voided since these scores were made, perhaps of another family"
    return None if set(versions) <= {now, None} else changed
