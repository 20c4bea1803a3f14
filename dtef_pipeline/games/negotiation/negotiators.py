"""Baselines of a negotiation, which say no words. They read what their seat knows: its own values, and the offer that stands."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from functools import lru_cache

from dtef_pipeline.games.contract import Chooses
from dtef_pipeline.games.negotiation.bargain import Bargain, Owners, StandingOffer
from dtef_pipeline.games.negotiation.messages import NegotiationMessage

Speaks = Callable[[Bargain, int, StandingOffer | None], NegotiationMessage]
SILENCE = NegotiationMessage()
ACCEPTANCE = NegotiationMessage(accepts=True)
_GREEDY_SHARE = (7, 10)
"""The greedy one accepts an offer of at least 7/10 of what everything is worth to it."""


def negotiators(parties: tuple[str, ...]) -> Mapping[str, Chooses]:
    """The baselines of negotiations between these parties, by name."""
    speakers: Mapping[str, Speaks] = {"equal-split": _equal_split, "greedy": _greedy, "pushover": _pushover, "silent": _silent}
    return {name: _as_baseline(speaks, parties) for name, speaks in speakers.items()}


def _as_baseline(speaks: Speaks, parties: tuple[str, ...]) -> Chooses:
    def chooses(state: Bargain, seat: int, _: random.Random) -> str:
        return speaks(state, seat, _to_answer(state, seat)).command(state.items, parties)

    return chooses


def _to_answer(state: Bargain, seat: int) -> StandingOffer | None:
    """Another's offer that the seat has not accepted yet."""
    offer = state.standing()
    return offer if offer and offer.by != seat and seat not in offer.accepted else None


def _waits(state: Bargain, seat: int) -> bool:
    """Whether an offer stands that the seat made or has accepted."""
    return state.standing() is not None and _to_answer(state, seat) is None


def _equal_split(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    if offer and state.worth(offer.owners, seat, seat) * len(state.values) >= sum(state.values[seat]):
        return ACCEPTANCE
    return SILENCE if _waits(state, seat) else NegotiationMessage(offer=most_even(state.values[seat], len(state.values), seat))


def _greedy(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    most, of = _GREEDY_SHARE
    if offer and state.worth(offer.owners, seat, seat) * of >= sum(state.values[seat]) * most:
        return ACCEPTANCE
    other = (seat + 1) % len(state.values)
    wanted = tuple(seat if value else other for value in state.values[seat])
    return SILENCE if _waits(state, seat) else NegotiationMessage(offer=wanted)


def _pushover(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    return ACCEPTANCE if offer else SILENCE


def _silent(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    return SILENCE


@lru_cache(maxsize=4096)
def most_even(own: tuple[int, ...], n_seats: int, seat: int) -> Owners:
    """The division whose bundles differ least in worth by the seat's own values; of those, one that is best for the seat."""

    def unevenness(owners: Owners) -> tuple[int, int]:
        bundles = [sum(value for value, owner in zip(own, owners, strict=True) if owner == one) for one in range(n_seats)]
        return max(bundles) - min(bundles), -bundles[seat]

    return min(itertools.product(range(n_seats), repeat=len(own)), key=unevenness)
