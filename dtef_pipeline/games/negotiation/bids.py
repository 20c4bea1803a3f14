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

_AMOUNT = r"(-?\$?-?[0-9](?:[0-9.,]{0,20}[0-9])?|-?\.[0-9]{1,20})"
_NUMBER_WORDS = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|billions?|dozens?)"
)
_WORDS_THAT_CHANGE_A_NUMBER = (
    rf"(?:a )?(?:or|plus|minus|times|more|less|fraction|per ?cent|divided|multiplied|squared|over|above|below|under|bit|few"
    rf"|little|couple|some|something|up|down|maybe|perhaps|possibly|no|k|zero|one|{_NUMBER_WORDS})\b"
)
_SAYS_NO_OTHER_AMOUNT = rf"(?! ?(?:[-+*/^%=~$&|x×÷·]? ?[-$]?\.?[0-9]|[-+*/^%=~×÷·]|{_WORDS_THAT_CHANGE_A_NUMBER}))"
_WORDS_BEHIND = (
    r"(?:and(?! (?:a )?(?:half|quarter))|as|at|because|but|for|given|gives|here|hoping|in|is|it|my|now|on|please|since|so|that|this|to|where"
    r"|which|will|with|would)\b"
)
_BEHIND_AMOUNT = (
    r"(?: ?(?:points?|pts))?[\"'\])}>|]{0,4}"
    rf"(?:\Z|(?: ?[.!;:,]{{1,3}}(?= |\Z)| ?—| (?=[(\[])[(\[]| {_WORDS_BEHIND}){_SAYS_NO_OTHER_AMOUNT})"
)
"""The end, or words that leave the number what it is: neither `bid 20 more than 30` nor `bid 5k` is a bid of the number it begins with."""
_SPOKEN_BID = re.compile(rf"(?:(?:i|my) )?(?:bid )?(?:(?:is|of) )?{_AMOUNT} ?(?:points?)?")
_BID_IN_WORDS = re.compile(rf"\bbid (?:(?:is|of|:) ?)?{_AMOUNT}(?:(?={_BEHIND_AMOUNT})())?")
"""An amount that is called a bid; its second group is there where what follows leaves it what it is."""
_BEFORE_BID = re.compile(
    r"(?:(?:i|my|we|our|the|a|final|sealed|will|would|shall|ll|now|hereby|place|submit|make|to|so|therefore|thus|then|ok|okay|answer|command"
    r"|player|bidder|party|boxed|text|[a-d])[ :,{]{1,3}){0,9}"
)
_ANY_NUMBER = re.compile(r"[0-9][0-9.,]*")
_ANY_NUMBER_WORD = re.compile(rf"\b{_NUMBER_WORDS}\b")
_EMPHASIS = re.compile(r"(?<![\w.)])[*`]+|[*`]++(?![\w.($-])")
"""Not what stands between two numbers: `70*5` is no 705."""
_LONGEST_BID_LINE = 60
_LONGEST_BID_TEXT = 20_000


def bid_command(bid: int) -> str:
    """The canonical command of a bid."""
    return f"bid {bid}"


def read_bid(text: str, legal: Sequence[str]) -> str | Illegal:
    """The bid of a text as a canonical command, else why there is none. What is no whole number of 0 to 100 points is never cut to one.

    Nor is a number taken out of a sum, a range or a larger number: `50-60`, `37/2`, `1 000` and `5k` are no bids.

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
    bids = [bid for line in text.splitlines() for bid in _BID_IN_WORDS.finditer(_one_line(line))]
    amounts = {_bare(bid[1]) for bid in bids}
    if len(amounts) == 1 and all(bid[2] is not None for bid in bids):
        return _judged(amounts.pop())
    if amounts:
        return Illegal(
            f"A bid is one whole number from 0 to {HIGHEST_BID}; the text speaks of {beginning(_spoken_of(bids), 40)!r}. "
            "End the reply with one line: ACTION: bid 37",
            "unparsed",
        )
    found = read_command(text, (), _one_line)
    return found if isinstance(found, Illegal) else Illegal(_why_no_bid(text), "unparsed")


def _of_action(spoken: str, text: str) -> str | Illegal:
    """The bid behind `ACTION:`, with or without words behind it that name no other number."""
    words = _one_line(spoken).strip(" {<[(\"'")
    amount = _amount(spoken)
    if amount is not None:
        return _judged(amount)
    if (before := _BEFORE_BID.match(words)) and not _several_numbers(words):
        bid = _BID_IN_WORDS.match(words, before.end())
        if bid is not None and bid[2] is not None:
            return _judged(_bare(bid[1]))
    found = read_command(text, (), _one_line)
    return found if isinstance(found, Illegal) and found.kind == "refused" else Illegal(_why_no_bid(spoken))


def _several_numbers(words: str) -> bool:
    """Whether words hold two different numbers, or one that is not in digits."""
    numbers = {found[0].rstrip(".,").lstrip("0") for found in _ANY_NUMBER.finditer(words)}
    in_words = _ANY_NUMBER_WORD.search(words) is not None
    return len(numbers) > 1 or in_words or any(char.isnumeric() and not char.isdecimal() for char in words)


def _spoken_of(bids: list[re.Match[str]]) -> str:
    """Bids that leave it open which number is meant, with some of what follows them."""
    return ", ".join(dict.fromkeys(bid.string[bid.start() : bid.end() + 8] for bid in bids[-2:]))


def _amount(line: str) -> str | None:
    """The number of a line that is nothing but a bid; None: the line is something else."""
    if len(line) > _LONGEST_BID_LINE:
        return None
    found = _SPOKEN_BID.fullmatch(_one_line(line).strip(" .!*`\"'"))
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
    return " ".join(_EMPHASIS.sub("", aligned_lower(text).replace("\\", " ")).split()).replace("bid: ", "bid ")
