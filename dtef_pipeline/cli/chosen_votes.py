"""Which votes of the store a command is about."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.preference.stored_votes import CountedVotes, WhichVotes, counted_votes, votes_of_reviewers
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.text.counted import and_more, counted
from resources.known_models import known_models
from resources.settings import Settings
from resources.votes import VoteStore, votes_of_store

USUAL_REVIEWERS = "person"
_JUDGES_NAMED = 5


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

    Raises ConfigError where several judges voted and none is named, and where no reviewer fits.
    """
    where, votes = stored_votes(chosen.reviewer_kind, chosen.family)
    meant = votes_of_reviewers(votes, chosen.reviewers, chosen.judges)
    if votes and not meant:
        given = " ".join([*(f"--reviewer {one}" for one in chosen.reviewers), *(f"--judge {one}" for one in chosen.judges)])
        raise ConfigError(f"{given}: got none that voted; {_known(votes)}")
    named = bool(chosen.reviewers or chosen.judges)
    if chosen.reviewer_kind == "judge" and not named and len({vote.reviewer_id for vote in votes}) > 1:
        raise ConfigError(
            f"{_known(votes)}; --judge NAME fits one by itself, and --judge '*' takes all for reviewers of one fit"
        )
    which = WhichVotes(chosen.items, chosen.leaks, chosen.own_judges, _own_servers() if chosen.reviewer_kind == "judge" else ())
    return where, counted_votes(meant, which)


def _known(votes: list[PlayersVote]) -> str:
    """Who voted. People's ids say nothing to those who do not know them, so they are only counted."""
    ids = sorted({vote.reviewer_id for vote in votes})
    if votes[0].reviewer_kind == "judge":
        return f"{counted(len(ids), 'judge')} voted: {and_more(ids, _JUDGES_NAMED)}"
    return f"{counted(len(ids), 'reviewer')} voted; `dtef preference votes` lists their ids"


def _own_servers() -> frozenset[str]:
    return known_models(Settings.from_environment(), COMPUTED_MODELS).own_servers
