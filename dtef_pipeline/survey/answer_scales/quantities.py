"""Options that are numbers, amounts of money, ages or durations, and their places by size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

_NUMERALS = {
    word: str(value)
    for value, word in enumerate(("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
}
_BELOW = r"less than|fewer than|younger than|before|under|up to|below|no more than|at most|within|<"
_ABOVE = r"more than|greater than|older than|after|over|above|at least|longer than|>"
_OR_MORE = r"(?P<more>\+| or more| or (?:over|older|later|above|higher|longer|greater)| and (?:over|older|above|up))"
_OR_LESS = r"(?P<less> or (?:less|fewer|under|below|younger|earlier)| and (?:under|below|younger))"
_AMOUNT_WRITTEN = r"[$€£]?(?P<{0}>\d+(?:[.,]\d+)*)(?P<{0}_k>k\b)?%?"
_NUMBER_WRITTEN = re.compile(
    rf"(?:ages? |aged |about |around |only |just )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE}))?\s*{_AMOUNT_WRITTEN.format('first')}"
    rf"(?:(?: [a-z]+)?\s*(?:-|–|to|or|and)\s*(?:just |less than |under )*{_AMOUNT_WRITTEN.format('second')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?:\s*[a-z]+)?(?: old)?"
)


def place_number(head: str) -> float | None:
    """Return the place of `3`, `none`, `three or more`, `18-25`, `$1,000 to less than $2,000`, `under 5`, `more than 7`, `65+`, `2 hours`."""
    head = re.sub(r"^no (?=[a-z]+(?:s\b|\Z))", "0 ", head)
    match = _NUMBER_WRITTEN.fullmatch(_replace_words(head, _NUMERALS))
    if match is None:
        return None
    value = float(match["first"].replace(",", "")) * (1000 if match["first_k"] else 1)
    return value - 0.5 * bool(match["below"] or match["less"]) + 0.5 * bool(match["above"] or match["more"])


_COUNTS_IN_WORDS = {
    "once": 1.0,
    "once or twice": 1.5,
    "twice": 2.0,
    "couple of": 2.0,
    "few": 3.0,
    "several": 4.0,
    "multiple": 4.0,
    "many": 6.0,
}
_TIMES_A_YEAR = {"hour": 8760, "day": 365, "week": 52, "month": 12, "year": 1}
_ADVERBS_OF_RATE = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
}
_RATE = re.compile(
    r"(?:about |around |only |just |at least )?(?:(?P<below>(?:less|fewer)(?: often)? than|lt) |(?P<above>more(?: often)? than) )?"
    rf"(?:(?:an? )?(?P<count>{'|'.join(sorted(_COUNTS_IN_WORDS, reverse=True))}|\d+)(?: ?(?:-|–|to|or) ?(?P<to>\d+))?(?P<more> or more)?"
    r"(?: times| days)? (?:an?|per|each|every(?! few| several| couple))|(?:once )?every(?: (?P<gap>few|several|other|couple of|[1-9]\d*))?)"
    r" (?P<unit>hour|day|week|month|year)s?"
)
_PLACES_OF_RATES = ((0.01, 1.0), (1, 2.0), (12, 3.0), (52, 4.0), (208, 5.0), (365, 6.0), (1460, 7.0), (8760, 8.0))
"""Times a year, and the place between `never` (0) and `always` (8)."""


def place_rate(head: str) -> float | None:
    """Return the place of `once a week`, `2-3 times a month`, `every few days`, `less than monthly` among words of frequency."""
    units = {adverb: f"every {unit}" for adverb, unit in _ADVERBS_OF_RATE.items()}
    match = _RATE.fullmatch(_replace_words(head, _NUMERALS | units))
    if match is None:
        return None
    count = _count_of(match["count"] or "once")
    times_a_unit = (count + float(match["to"] or count)) / 2 + 0.5 * bool(match["more"] or match["above"])
    size = (0.9 if match["below"] else 1.0) * times_a_unit * _TIMES_A_YEAR[match["unit"]]
    rates, places = zip(*_PLACES_OF_RATES, strict=True)
    gap = 2.0 if match["gap"] == "other" else _count_of(match["gap"] or "once")
    return float(np.interp(size / gap, rates, places))


def _count_of(count: str) -> float:
    return _COUNTS_IN_WORDS[count] if count in _COUNTS_IN_WORDS else float(count)


def _replace_words(text: str, replacements: Mapping[str, str]) -> str:
    return re.sub(r"\b[a-z]+\b", lambda word: replacements.get(word[0], word[0]), text)


_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0, "decade": 3650.0}
_UNIT = r"(?P<{0}>minutes?|hours?|days?|weeks?|months?|years?|decades?)"
_COUNT_OF_UNITS = r"(?P<{0}>\d+(?:\.\d+)?|an?|the|few|several|a few|a couple of)"
_DURATION = re.compile(
    rf"(?:about |around |it was |yes,? )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE})|(?P<past>in|during|over))?\s*"
    rf"(?:(?:the |my |this )?(?P<recent>past|last|previous|next|coming) )?"
    rf"(?:{_COUNT_OF_UNITS.format('count')}(?: |(?=-|–)))?(?:{_UNIT.format('unit')})?"
    rf"(?:\s*(?:-|–|to|or|and|but)\s*(?:less than |under )?(?:{_COUNT_OF_UNITS.format('to')} )?{_UNIT.format('to_unit')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?: ago| old| before)?"
)


def place_durations(heads: Sequence[str]) -> list[float | None]:
    """Return the places of `less than a month`, `1 to 6 months`, `within the past year`, `more than 5 years ago`; `never` is longest ago."""
    is_past = any(re.search(r"\b(?:ago|past|last)\b", head) for head in heads)
    is_until = any(re.match(r"(?:with)?in \S", head) for head in heads)
    none = float("inf") if is_past or is_until else 0.0
    heads = [re.sub(r"^this (?=week|month|year)", "past ", "past day" if head == "today" else head) for head in heads]
    heads = ["more than 100 years ago" if re.fullmatch(r"longer ago|before (?:that|then)", head) else head for head in heads]
    end_sizes = {"never(?: .*)?|no|none|not at all|no time": none, "right (?:away|now)|immediately|now|at once": 0.0}
    return [
        next((size for words, size in end_sizes.items() if re.fullmatch(words, head)), _place_duration(head)) for head in heads
    ]


def place_times(heads: Sequence[str]) -> list[float | None]:
    """Return the places of `never`, `once`, `2 to 5 times`, `6 or more times`; `[None]` if no option counts times."""
    if not any(re.search(r"\d.* times\b", head) for head in heads):
        return [None]
    numbers = {"never": "0", "not at all": "0", "once": "1", "only once": "1", "twice": "2"}
    return [place_number(numbers.get(head, head)) for head in heads]


def _place_duration(head: str) -> float | None:
    match = _DURATION.fullmatch(_replace_words(head, _NUMERALS))
    unit = match and (match["unit"] or (match["count"] and match["to_unit"]))
    if match is None or not unit or not (match["count"] or match["recent"]):
        return None
    size = _count_of(re.sub(r"^(?:an?|the)\Z", "once", (match["count"] or "once").removeprefix("a ")))
    shift = bool(match["above"] or match["more"]) + 0.5 * bool(match["to_unit"]) - bool(match["below"] or match["less"])
    return size * _DAYS[unit.rstrip("s")] * (1 + 0.01 * shift)
