"""Spellings of commands, and reasons why a command is not allowed.

With a fixed limit, every command has only one possible amount, so an amount after the command is ignored: `call 2`, `Raise to 8 chips` and
`bets` are read as call, raise and bet. A command is never replaced by another that is allowed: `bet` when only a raise is possible, `call`
when there is nothing to call, and `all-in` are illegal, and the player is shown the allowed commands.
"""

from __future__ import annotations

import re

from dtef_pipeline.games.holdem.betting import BETS_ALLOWED, HOLDEM_COMMANDS, HoldemHand, list_allowed_commands
from dtef_pipeline.games.reading import normalise_command, strip_command

_COMMAND_SPELLED = re.compile(
    r"^(?:i )?(?:(fold|check|call|bet)s?|(?:re-?)?(raise)s?)"
    r"(?: (?:to|by|of|another)\b)?(?: \$?[0-9]{1,6})?(?: (?:more )?chips?)?[.!]?$",
    re.MULTILINE,
)
_COMMAND_REASONS = {
    "fold": "There is nothing to call, so there is no reason to fold",
    "check": "There is a bet to call, so you cannot check",
    "call": "There is nothing to call",
    "bet": "There is a bet on this street already: one more is called a raise",
    "raise": "There is no bet on this street: the first one is called a bet",
}
"""By command, why it is not allowed while more bets on the street are possible."""


def normalise_betting_command(text: str) -> str:
    """Convert each line that is a command to the form in the rules, without an amount; other lines as in `games.reading`."""
    return _COMMAND_SPELLED.sub(lambda match: match[1] or match[2], normalise_command(text))


def explain_illegal_bet(command_text: str, hand: HoldemHand) -> str:
    """Return the reason shown to a player whose text is not a legal command now, with public information only."""
    now = f"allowed: {', '.join(list_allowed_commands(hand))}"
    command = re.split(r"\W", strip_command(command_text, normalise_betting_command), maxsplit=1)[0]
    if command in list_allowed_commands(hand):
        return f"Name one command and nothing else; {now}."
    if command not in HOLDEM_COMMANDS:
        return f"That is no command of fixed-limit hold'em, where the size of every bet is fixed; {now}."
    if command in ("bet", "raise") and hand.bets == BETS_ALLOWED:
        return f"There are {BETS_ALLOWED} bets on this street already, and no more are allowed; {now}."
    return f"{_COMMAND_REASONS[command]}; {now}."
