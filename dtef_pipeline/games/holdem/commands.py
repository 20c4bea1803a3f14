"""How a command may be spelled, and why one is not allowed.

Fixed limit leaves one amount for every command, so an amount behind it changes nothing and is not read: `call 2`, `Raise to 8 chips` and
`bets` are call, raise and bet. A word for something else is never bent into what is allowed: `bet` where only a raise is possible, `call`
where there is nothing to call and `all-in` are illegal, and the player is told what is allowed.
"""

from __future__ import annotations

import re

from dtef_pipeline.games.holdem.betting import BETS_ALLOWED, HOLDEM_COMMANDS, HoldemHand, allowed

_SPELLED = re.compile(
    rf"(?:i )?(re-?)?({'|'.join(HOLDEM_COMMANDS)})s?(?: (?:to|by|of|the|another))?(?: \$?[0-9]{{1,6}})?(?: (?:more )?chips?)?"
)
_LONGEST_COMMAND = 60
_FRAME = " \t.!,;:*`_\"'()[]<>"


def plain_command(text: str) -> str:
    """A command as the rules have it: small letters, without amounts and signs around it; any other text in small letters."""
    if len(text) > 4 * _LONGEST_COMMAND:
        return ""
    words = " ".join(text.casefold().split()).strip(_FRAME)
    found = _SPELLED.fullmatch(words)
    if found is None or (found[1] and found[2] != "raise"):
        return words
    return found[2]


def why_not(command: str, hand: HoldemHand) -> str:
    """What a player is told of a command that is not allowed now; nothing that is not open."""
    now = f"allowed: {', '.join(allowed(hand))}"
    faces_bet = "call" in allowed(hand)
    if command in ("bet", "raise") and hand.bets == BETS_ALLOWED:
        return f"There are {BETS_ALLOWED} bets on this street already, and no more are allowed; {now}."
    reasons = {
        "fold": "There is nothing to call, so there is no reason to fold",
        "check": "There is a bet to call, so you cannot check",
        "call": "There is nothing to call",
        "bet": "There is a bet on this street already: one more is called a raise",
        "raise": "There is no bet on this street: the first one is called a bet",
    }
    if command in reasons and (command != "fold" or not faces_bet):
        return f"{reasons[command]}; {now}."
    return f"That is no command of fixed-limit hold'em, where the size of every bet is fixed; {now}."
