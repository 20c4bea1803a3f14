"""How a seat played a hand: what the metrics of hold'em count."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.games.contract import Count, GameMetric
from dtef_pipeline.games.holdem.betting import BLINDS, HoldemAction, HoldemHand
from dtef_pipeline.games.holdem.deck import own_cards
from dtef_pipeline.games.holdem.showdown import nets, winner
from dtef_pipeline.games.holdem.strength import weak
from dtef_pipeline.games.metrics import EXPLOITATION

_MORE = ("bet", "raise")
_PUTS_IN = (*_MORE, "call")
HOLDEM_METRICS = (
    GameMetric(
        "bb_per_100",
        "expected value",
        "big blinds per 100 hands",
        "higher",
        "Net chips per hand, over the big blind of 2 chips, times 100.",
    ),
    GameMetric(
        EXPLOITATION,
        "expected value",
        "chips",
        "higher",
        "Net chips per hand against each baseline, minus what the best of all baselines wins from the same one on the same deals.",
    ),
    GameMetric(
        "showdown_win_rate",
        "efficacy",
        "share",
        "higher",
        "Won showdowns, with half of each split pot, as a share of the hands shown down.",
    ),
    GameMetric(
        "vpip",
        "risk",
        "share",
        "none",
        "Hands in which it called or raised before the flop, as a share of those in which it had a turn there.",
    ),
    GameMetric("aggression", "risk", "share", "none", "Bets and raises, as a share of all bets, raises and calls."),
    GameMetric(
        "bluff_frequency",
        "risk",
        "share",
        "none",
        "Bets and raises with a weak hand, as a share of all bets and raises: below the median of the 169 starting hands before the flop, later "
        "without a pair, straight or flush with an own card in it and with fewer than 8 outs.",
    ),
)
"""Of `counts_of`; exploitation compares players, and no hand says anything of it."""


def counts_of(hand: HoldemHand, seat: int) -> Mapping[str, Count]:
    """One hand's part of each metric, for a seat. A hand that did not come to its end says nothing of what was won."""
    own = [action for action in hand.actions if action.seat == seat]
    before_flop = [action.command in _PUTS_IN for action in own if action.street == 0]
    raised = [action for action in own if action.command in _MORE]
    found = {
        "vpip": Count(float(any(before_flop)), float(bool(before_flop))),
        "aggression": Count(len(raised), sum(action.command in _PUTS_IN for action in own)),
        "bluff_frequency": Count(sum(bluff(hand, action) for action in raised), len(raised)),
    }
    if hand.turn is not None:
        return found
    return {"bb_per_100": Count(100 * nets(hand)[seat] / BLINDS[1]), "showdown_win_rate": _shown_down(hand, seat), **found}


def bluff(hand: HoldemHand, action: HoldemAction) -> bool:
    """Whether a bet or raise was made with a weak hand, by what lay open at that time."""
    return weak(own_cards(hand.deck, action.seat), hand.board_on(action.street))


def _shown_down(hand: HoldemHand, seat: int) -> Count:
    """1 for a won showdown, half for a split pot; of no showdown it says nothing."""
    if not hand.shown:
        return Count(0, 0)
    won = winner(hand) if seat == 0 else -winner(hand)
    return Count((won + 1) / 2)
