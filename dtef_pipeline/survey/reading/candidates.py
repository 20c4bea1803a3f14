"""Readings of unlabelled values in a plain text (see `text/plain.py`): arrays, values on a line, values in a column.

Each reader yields candidates: a place in the text, its values and notes on them. `parsing` chooses among them. All patterns are possessive
or bounded: time is linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.plain import take_recent

# Groups are atomic, `(?>...)`, and not possessive: before 3.11.5 Python loses its place in a possessive group that fails half-way.
NUMERAL = r"[-+]?+(?:[0-9]++(?>(?:\.[0-9]++)?)|\.[0-9]++)(?>(?:e[-+]?+[0-9]++)?)"
COMMA_NUMBER = r"[-+]?+(?:[0-9]++(?>(?:,[0-9]++)*)(?>(?:\.[0-9]++)?)|\.[0-9]++)(?>(?:e[-+]?+[0-9]++)?)"
ABOUT = r"(?>(?:(?:~|about|around|approximately|approx\.?|roughly|circa|ca\.|nearly) ?)?)"
PERCENT = r"(?>(?: ?(?:%|percent\b|per cent\b|pct\b))?)"

_BETWEEN_VALUES = r"(?: ?[,;/|] ?(?:and )?| and | & | |\t)"
_STANDS_ALONE = r"(?! ?[-–→] ?[0-9])(?![\w:])(?!\.[0-9])(?! to [0-9])(?! or [0-9])"
_LISTED_VALUE = ABOUT + NUMERAL + PERCENT + _STANDS_ALONE
_RUN = re.compile(rf"(?<![\w.,–-]){_LISTED_VALUE}(?>(?:{_BETWEEN_VALUES}{_LISTED_VALUE})+)")
_NUMBER_PER_LINE = re.compile(rf"(?m)(?>(?:^[ |]*+(?>(?:[-–•·] )?){ABOUT}{COMMA_NUMBER}{PERCENT}[ ,;|.]*+(?:\n|\Z)){{2,}})")
_BULLET = re.compile(r"(?m)^[ |]*[-–•·] ")
_ARRAY = re.compile(r"\[([^\[\]{}]*)\]")
_INTERVAL = re.compile(r"(?:[%0-9]|\bci|\binterval|\brange)[ :,=]*\Z")
_BOUNDS = re.compile(r"\b(?:between|from) ?\Z")
_CITATION = re.compile(r"\[ ?\^?[0-9]{1,3} ?\]")
_ITEM = re.compile(rf"{ABOUT}({COMMA_NUMBER})\.?{PERCENT}")
_RANGE = re.compile(rf"{ABOUT}{NUMERAL}{PERCENT} ?(?:[-–]|to) ?{NUMERAL}{PERCENT}")
_NOT_A_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity|null|none|n/a)")
_PLAIN_NUMBERS = re.compile(NUMERAL)
_COMMA_NUMBERS = re.compile(COMMA_NUMBER)
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_CLOSE_COMMA = re.compile(r",(?! )")
"""A comma that separates as one of thousands would: `1,200,800` may be two numbers, `1,200, 800` are."""
_REMARK = re.compile(r"(?://|#)[^\n]*|\([^()\n0-9]{1,80}+\)")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
NEARBY = 200
"""How far a line is looked along, so that one endless line costs no more than many short ones."""
_ALNUM = re.compile(r"[^\W_]")


class Candidate(NamedTuple):
    """A reading: `status` is ok, wrong_length or unparseable; `values` are as written, in option order if ok.

    With `prose`, it is in the middle of a sentence, so it never displaces an array or a list.
    """

    start: int
    end: int
    status: str
    values: tuple[float, ...]
    how: str
    prose: bool = False


def make_candidate(start: int, end: int, values: Sequence[float], n: int, form: str, *, prose: bool = False) -> Candidate:
    """Return a reading of `values`, with its status as a distribution over n options."""
    if fault := explain_no_distribution(values):
        return Candidate(start, end, "unparseable", (), f"{form}: {fault}")
    if len(values) != n:
        return Candidate(
            start, end, "wrong_length", (), f"{form} of {format_count(len(values), 'value')} for {format_count(n, 'option')}"
        )
    # `1.200` beside `800` may be counts with a European separator.
    has_fraction = max(values) >= 100 and any(v != int(v) for v in values)
    if has_fraction and not form.startswith("array") and not is_near_whole(sum_in_order(values)):
        return Candidate(start, end, "unparseable", (), f"{form}: a point may be a decimal or a thousands separator")
    return Candidate(start, end, "ok", tuple(values), form, prose)


def explain_no_distribution(values: Sequence[float]) -> str:
    """Return why the values are not a distribution, or a blank."""
    if any(not math.isfinite(v) for v in values):
        return "a value is not a finite number"
    if any(v < 0 for v in values):
        return "a value is negative"
    total = sum_in_order(values)
    if total == 0:
        return "all values are zero"
    return "" if math.isfinite(total) else "the values add up to infinity"


def sum_in_order(values: Sequence[float]) -> float:
    """Return the sum from left to right with plain rounding, as in the vectorised path (`sum` compensates from 3.12 on)."""
    total = 0.0
    for value in values:
        total += value
    return total


def is_near_whole(total: float, points: float = 5.0) -> bool:
    """Return whether a total is within `points` percentage points of 100 or of 1."""
    return abs(total - 100) <= points or abs(total - 1) <= points / 100


def parse_written_number(text: str, commas: bool = False) -> float:
    """Return the value of a written number. `commas`: a comma is a thousands separator or a decimal comma."""
    if commas and "," in text:
        text = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text.replace(",", ".")
    return float(text)


def is_joinable(text: str) -> bool:
    """Return whether a number with commas can be a single number: `1,200` or `45,2`, not `45,30,15`."""
    return "," not in text or bool(_THOUSANDS.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text))


def mask_matches(pattern: re.Pattern[str], text: str, filler: str) -> str:
    """Replace each match by `filler`, with places unchanged."""
    return pattern.sub(lambda match: filler * (match.end() - match.start()), text)


def read_unlabelled(text: str, n: int) -> Iterator[Candidate]:
    text = mask_matches(_CITATION, text, " ")
    yield from _find_arrays(text, n)
    remainder = mask_matches(_ARRAY, text, "\x1a")
    yield from _find_columns(remainder, n)
    yield from _find_runs(remainder, n)


def _find_arrays(text: str, n: int) -> Iterator[Candidate]:
    for match in take_recent(_ARRAY.finditer(text), n):
        content = _REMARK.sub("", match[1])
        values = _read_array_values(content)
        if len(values) < 2 or _INTERVAL.search(text, max(0, match.start() - 12), match.start()):
            continue
        if _is_like_citations(values) and not _is_on_own_line(text, match.start(), match.end()):
            continue
        form = "array" if content == match[1] else "array with remarks"
        if "-" in content and any(map(_RANGE.fullmatch, _split_array_items(content))):
            form = "array with a range in it"
        yield make_candidate(match.start(), match.end(), values, n, form)


def _split_array_items(content: str) -> list[str]:
    separator = next((s for s in (";", ",", "|") if s in content), None)
    return [item.strip() for item in content.strip(" ,;|\n").split(separator)]


def _read_array_values(content: str) -> list[float]:
    """Return the values of an array, NaN for an element that is not a value; empty if it is not an array of values."""
    values = []
    for item in _split_array_items(content):
        if (match := _ITEM.fullmatch(item)) and is_joinable(match[1]):
            values.append(parse_written_number(match[1], commas=True))
        elif _RANGE.fullmatch(item) or _NOT_A_NUMBER.fullmatch(item):
            values.append(math.nan)
        else:
            return []
    return values


def _is_like_citations(values: Sequence[float]) -> bool:
    """Return whether these are small rising whole numbers: the sources [2, 5]."""
    rising = all(a < b for a, b in pairwise(values))
    return rising and values[0] >= 1 and values[-1] < 90 and all(v == int(v) for v in values) and sum(values) < 90


def _is_on_own_line(text: str, start: int, end: int) -> bool:
    """Return whether the text from start to end has its own line, or follows a colon or an equals sign."""
    before = text[max(0, start - NEARBY) : start].rpartition("\n")[2].rstrip()
    after = text[end : end + NEARBY].partition("\n")[0]
    sources = before.endswith(("sources:", "source:", "references:", "refs:", "ref:", "see:"))
    return not sources and (before.endswith((":", "=")) or not _ALNUM.search(before)) and not _ALNUM.search(after)


def _find_columns(text: str, n: int) -> Iterator[Candidate]:
    for match in take_recent(_NUMBER_PER_LINE.finditer(text), n):
        numbers = _COMMA_NUMBERS.findall(_BULLET.sub("", match[0]))
        if all(map(is_joinable, numbers)):
            values = [parse_written_number(v, commas=True) for v in numbers]
            yield make_candidate(match.start(), match.end(), values, n, "column of values")


def _find_runs(text: str, n: int) -> Iterator[Candidate]:
    """Yield values on one line. In prose they must add up to a whole, as must `60/40` and an array cut off before its end."""
    for match in take_recent(_RUN.finditer(text), n):
        values = _run_values(match[0], n)
        is_whole = is_near_whole(sum_in_order(values))
        cut_off = "[" in text[max(0, match.start() - 2) : match.start()]
        if cut_off and not is_near_whole(sum_in_order(values), 1.0):
            yield Candidate(match.start(), match.end(), "unparseable", (), "array without its end")
            continue
        own_line = _is_on_own_line(text, match.start(), match.end())
        bounds = _BOUNDS.search(text, max(0, match.start() - 10), match.start())
        if (is_whole and not bounds) or (own_line and "/" not in match[0]):
            yield make_candidate(match.start(), match.end(), values, n, "list of values", prose=not own_line)


def _run_values(run: str, n: int) -> list[float]:
    """Return the values of a run. By length and separators, `45,2; 30,1` and `1,200; 800` have commas inside numbers, `45,30,15,10` does
    not.
    """
    split = [float(v) for v in _PLAIN_NUMBERS.findall(run)]
    if len(split) == n or "," not in run:
        return split
    numbers = _COMMA_NUMBERS.findall(run)
    if len(numbers) != n or not all(map(is_joinable, numbers)):
        return split
    comma_values = [parse_written_number(v, commas=True) for v in numbers]
    comma_numbers = [v for v in numbers if "," in v]
    thousands = sum(1 for v in comma_numbers if _THOUSANDS.fullmatch(v))
    separators = _COMMA_NUMBERS.sub("", run)
    comma_separates = "," in separators
    if thousands == len(comma_numbers):
        return split if _CLOSE_COMMA.search(separators) else comma_values
    certain = thousands == 0 and is_near_whole(sum_in_order(comma_values)) and (not comma_separates or len(comma_numbers) == n)
    return comma_values if certain else split
