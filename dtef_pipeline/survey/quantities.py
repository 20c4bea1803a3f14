"""Options that are numbers, amounts of money, ages or lengths of time: the place of each by its size."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMERALS = {
    word: str(value)
    for value, word in enumerate(("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
}
_BELOW = r"less than|fewer than|under|up to|below|no more than|at most|within|<"
_ABOVE = r"more than|greater than|over|above|at least|longer than|>"
_OR_MORE = r"(?P<more>\+| or more| or (?:over|older|above|higher|longer|greater)| and (?:over|older|above|up))"
_OR_LESS = r"(?P<less> or (?:less|fewer|under|below|younger)| and (?:under|below|younger))"
_AMOUNT_WRITTEN = r"[$€£]?(?P<{0}>\d+(?:[.,]\d+)*)(?P<{0}_k>k\b)?%?"
_NUMBER_WRITTEN = re.compile(
    rf"(?:ages? |aged |about |around |only |just )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE}))?\s*{_AMOUNT_WRITTEN.format('first')}"
    rf"(?:(?: [a-z]+)?\s*(?:-|–|to|or|and)\s*(?:just |less than |under )*{_AMOUNT_WRITTEN.format('second')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?:\s*[a-z]+)?(?: old)?"
)


def number(head: str) -> float | None:
    """The place of `3`, `none`, `three or more`, `18-25`, `$1,000 to less than $2,000`, `under 5`, `more than 7`, `65+`, `2 hours`."""
    head = re.sub(r"^no (?=[a-z]+s\b)", "0 ", head)
    match = _NUMBER_WRITTEN.fullmatch(re.sub(r"\b[a-z]+\b", lambda word: _NUMERALS.get(word[0], word[0]), head))
    if match is None:
        return None
    value = float(match["first"].replace(",", "")) * (1000 if match["first_k"] else 1)
    return value - 0.5 * bool(match["below"] or match["less"]) + 0.5 * bool(match["above"] or match["more"])


_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0, "decade": 3650.0}
_UNIT = r"(?P<{0}>minutes?|hours?|days?|weeks?|months?|years?|decades?)"
_COUNT_OF_UNITS = r"(?P<{0}>\d+(?:\.\d+)?|an?|the|few|several|a few|a couple of)"
_DURATION = re.compile(
    rf"(?:about |around |it was |yes,? )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE})|(?P<past>in|during|over))?\s*"
    rf"(?:(?:the |my |this )?(?P<recent>past|last|previous) )?(?:{_COUNT_OF_UNITS.format('count')} )?(?:{_UNIT.format('unit')})?"
    rf"(?:\s*(?:-|–|to|or|and|but)\s*(?:less than |under )?(?:{_COUNT_OF_UNITS.format('to')} )?{_UNIT.format('to_unit')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?: ago| old| before)?"
)


def durations(heads: Sequence[str]) -> list[float | None]:
    """The places of `less than a month`, `1 to 6 months`, `within the past year`, `more than 5 years ago`; `never` is longest ago."""
    is_past = any(re.search(r"\b(?:ago|past|last)\b", head) for head in heads)
    none = float("inf") if is_past else 0.0
    heads = ["more than 100 years ago" if re.fullmatch(r"longer ago|before (?:that|then)", head) else head for head in heads]
    return [none if re.fullmatch(r"never(?: .*)?|no|none|not at all|no time", head) else _duration(head) for head in heads]


def times(heads: Sequence[str]) -> list[float | None]:
    """The places of `never`, `once`, `2 to 5 times`, `6 or more times`; nothing where no option counts times."""
    if not any(re.search(r"\d.* times\b", head) for head in heads):
        return [None]
    counted = {"never": "0", "not at all": "0", "once": "1", "only once": "1", "twice": "2"}
    return [number(counted.get(head, head)) for head in heads]


def _duration(head: str) -> float | None:
    match = _DURATION.fullmatch(re.sub(r"\b[a-z]+\b", lambda word: _NUMERALS.get(word[0], word[0]), head))
    unit = match and (match["unit"] or (match["count"] and match["to_unit"]))
    if match is None or not unit or not (match["count"] or match["recent"]):
        return None
    counted = {"a": 1.0, "an": 1.0, "the": 1.0, None: 1.0, "few": 3.0, "a few": 3.0, "several": 4.0, "a couple of": 2.0}
    size = counted[match["count"]] if match["count"] in counted else float(match["count"])
    shift = bool(match["above"] or match["more"]) + 0.5 * bool(match["to_unit"]) - bool(match["below"] or match["less"])
    return size * _DAYS[unit.rstrip("s")] * (1 + 0.01 * shift)
