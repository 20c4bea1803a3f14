"""Which votes of the store a command is about."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.preference.stored_votes import votes_on_items
from dtef_pipeline.preference.votes import PlayersVote
from resources.settings import Settings
from resources.votes import VoteStore, votes_of_store

USUAL_REVIEWERS = "person"


class ChosenVotes(NamedTuple):
    """Votes of one kind of reviewer: those of people and of judges are never mixed."""

    family: str | None = None
    items: tuple[str, ...] = ()
    """Patterns."""
    reviewer_kind: str = USUAL_REVIEWERS
    leaks: bool = True
    """Whether votes count on pairs in whose texts a name stood."""


def stored_votes(chosen: ChosenVotes) -> tuple[str, list[PlayersVote]]:
    """What the store is called, and its votes that are meant and not voided."""
    with VoteStore(Settings.from_environment().responses_url) as store:
        found = votes_of_store(store, family=chosen.family, reviewer_kind=chosen.reviewer_kind, leaks=chosen.leaks)
        return store.name, votes_on_items(found, chosen.items)
