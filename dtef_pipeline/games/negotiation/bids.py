"""Bids in the words of players: a whole number of points that a text names as its bid."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.negotiation.auction import HIGHEST_BID
from dtef_pipeline.games.reading import read_command, spoken_action
from dtef_pipeline.text.aligned import aligned_lower
from dtef_pipeline.text.beginning import beginning
from dtef_pipeline.text.plain import without_thinking

_AMOUNT = r"(-?\$?-?[0-9][0-9.,]{0,20}|-?\.[0-9]{1,20})"
_SPOKEN_BID = re.compile(rf"(?:(?:i|my) )?(?:bid )?(?:(?:is|of) )?{_AMOUNT} ?(?:points?)?")
_BID_IN_WORDS = re.compile(rf"\bbid (?:(?:is|of|:) ?)?{_AMOUNT}")
_LONGEST_BID_LINE = 60
_LONGEST_BID_TEXT = 20_000


def bid_command(bid: int) -> str:
    """The canonical command of a bid."""
    return f"bid {bid}"


def read_bid(text: str, legal: Sequence[str]) -> str | Illegal:
    """The bid of a text as a canonical command, else why there is none. What is no whole number of 0 to 100 points is never cut to one.

    It is the last `ACTION:`, else the last line that is a bid, else the only bid that the text speaks of.
    """
    spoken = spoken_action(text)
    if spoken is not None:
        return _of_action(spoken, text)
    text = without_thinking(text)[-_LONGEST_BID_TEXT:]
    lines = [amount for line in text.splitlines() if (amount := _amount(line)) is not None]
    if lines:
        whole = [found for amount in lines if isinstance(found := _judged(amount), str)]
        return whole[-1] if whole else _judged(lines[-1])
    amounts = _amounts_in(text)
    if len(amounts) == 1:
        return _judged(amounts.pop())
    if amounts:
        return Illegal(
            f"The text speaks of {len(amounts)} bids; allowed: one, in a line of its own: ACTION: bid 37", "unparsed"
        )
    found = read_command(text, (), _one_line)
    return found if isinstance(found, Illegal) else Illegal(_why_no_bid(text), "unparsed")


def _of_action(spoken: str, text: str) -> str | Illegal:
    """The bid behind `ACTION:`, with or without words behind it."""
    amount = _amount(spoken)
    amounts = {amount} if amount is not None else _amounts_in(spoken)
    if len(amounts) == 1:
        return _judged(amounts.pop())
    found = read_command(text, (), _one_line)
    return found if isinstance(found, Illegal) and found.kind == "refused" else Illegal(_why_no_bid(spoken))


def _amounts_in(text: str) -> set[str]:
    """The different amounts that a text calls bids."""
    return {_bare(found[1]) for found in _BID_IN_WORDS.finditer(_one_line(text))}


def _amount(line: str) -> str | None:
    """The number of a line that is nothing but a bid; None: the line is something else."""
    if len(line) > _LONGEST_BID_LINE:
        return None
    found = _SPOKEN_BID.fullmatch(_one_line(line).replace("bid: ", "bid ").strip(" .!*`\"'"))
    return _bare(found[1]) if found else None


def _bare(amount: str) -> str:
    return amount.replace("$", "").rstrip(".,")


def _judged(amount: str) -> str | Illegal:
    digits = amount.lstrip("0") or "0"
    legal = digits.isdecimal() and len(digits) <= len(str(HIGHEST_BID)) and int(digits) <= HIGHEST_BID
    return bid_command(int(digits)) if legal else Illegal(_why_no_bid(amount))


def _why_no_bid(said: str) -> str:
    return f"A bid is a whole number from 0 to {HIGHEST_BID}; you said {beginning(said, 40)!r}."


def _one_line(text: str) -> str:
    """Small letters, plain digits, single spaces, without emphasis."""
    return " ".join(aligned_lower(text).replace("*", "").replace("`", "").split())
