"""Services for votes over HTTP: the next pair, and the rate limit of reviewers."""

from __future__ import annotations

import threading
from typing import Annotated

from fastapi import Depends, Request

from dtef_pipeline.api.rate_limit import RateLimit
from dtef_pipeline.api.services import get_services
from dtef_pipeline.preference.pair_blinding import BlindedPair
from resources.votes.pair_queue import WaitingPairs
from resources.votes.vote_store import VoteStore

VOTES_A_MINUTE = 60
"""Rate limit of a reviewer: people read before they vote, guessing programs do not."""


class Feedback:
    """Services of an application, made once."""

    def __init__(self, votes: VoteStore) -> None:
        self.waiting = WaitingPairs(votes, _prepare_for_people)
        self.rate = RateLimit(VOTES_A_MINUTE)
        self.pairing = threading.Lock()
        """Lock held while pairs are made, so that two concurrent requests do not report the same pairs."""


def _prepare_for_people(family: str, pair: BlindedPair) -> BlindedPair:
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.api.review.paired_responses import prepare_for_people

    return prepare_for_people(family, pair)


async def get_feedback(request: Request) -> Feedback:
    """Return those of the application that serves the request."""
    state = request.app.state
    if not hasattr(state, "feedback"):
        state.feedback = Feedback(get_services(request).votes)
    feedback: Feedback = state.feedback
    return feedback


UsedForVotes = Annotated[Feedback, Depends(get_feedback)]
