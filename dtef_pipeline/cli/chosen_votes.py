"""Which votes of the store a command is about."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.cli.judges_meant import with_named_judges
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.preference.stored_votes import CountedVotes, WhichVotes, counted_votes, votes_of_reviewers
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.text.counted import and_more, counted
from resources.settings import Settings
from resources.votes import VoteStore, votes_of_store

USUAL_REVIEWERS = "person"
_VOTING_JUDGES_NAMED = 5
_ITEMS_NAMED = 3


class ChosenVotes(NamedTuple):
    """Votes of one kind of reviewer: those of people and of judges are never mixed."""

    family: str | None = None
    items: tuple[str, ...] = ()
    """Patterns, here and below."""
    reviewer_kind: str = USUAL_REVIEWERS
    leaks: bool = True
    """Whether votes count on pairs in whose texts a name stood."""
    reviewers: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    own_judges: bool = True
    """Whether a judge's votes count on responses of its own maker."""


def stored_votes(reviewer_kind: str, family: str | None = None) -> tuple[str, list[PlayersVote]]:
    """What the store is called, and its votes of this kind of reviewer that are not voided."""
    with VoteStore(Settings.from_environment().responses_url) as store:
        return store.name, votes_of_store(store, family=family, reviewer_kind=reviewer_kind)


def chosen_votes(chosen: ChosenVotes) -> tuple[str, CountedVotes]:
    """What the store is called, and its votes that are meant and not voided.

    Raises StoreError where there are no such votes at all, and ConfigError where no vote fits.
    """
    where, votes = stored_votes(chosen.reviewer_kind, chosen.family)
    if not votes:
        raise StoreError(_nothing(where, chosen))
    judges = with_named_judges(chosen.judges, {vote.reviewer_id for vote in votes})
    meant = votes_of_reviewers(votes, chosen.reviewers, judges)
    if not meant:
        given = " ".join([*(f"--reviewer {one}" for one in chosen.reviewers), *(f"--judge {one}" for one in chosen.judges)])
        raise ConfigError(f"{given}: got none that voted; {_known(votes)}")
    which = WhichVotes(chosen.items, chosen.leaks, chosen.own_judges, _own_servers() if chosen.reviewer_kind == "judge" else ())
    found = counted_votes(meant, which)
    if not found.votes:
        raise ConfigError(f"nothing to fit: none of {counted(len(meant), 'vote')} is on such an item or pair; {_items(meant)}")
    return where, found


def _nothing(where: str, chosen: ChosenVotes) -> str:
    whose = "people" if chosen.reviewer_kind == USUAL_REVIEWERS else "judges"
    on = f" on responses of {chosen.family}" if chosen.family else ""
    return f"nothing to fit: {where} holds no votes of {whose}{on}; `dtef preference votes` lists those there are"


def _items(votes: list[PlayersVote]) -> str:
    ids = sorted({vote.item_id for vote in votes})
    return f"items: {and_more(ids, _ITEMS_NAMED)}"


def _known(votes: list[PlayersVote]) -> str:
    """Who voted. People's ids say nothing to those who do not know them, so they are only counted."""
    ids = sorted({vote.reviewer_id for vote in votes})
    if votes[0].reviewer_kind == "judge":
        return f"{counted(len(ids), 'judge')} voted: {and_more(ids, _VOTING_JUDGES_NAMED)}"
    return f"{counted(len(ids), 'reviewer')} voted; `dtef preference votes` lists their ids"


def _own_servers() -> frozenset[str]:
    # Loads every family, which votes of people do not need.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.known_models import known_models

    return known_models(Settings.from_environment(), COMPUTED_MODELS).own_servers
