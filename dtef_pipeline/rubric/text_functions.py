"""Point functions that look for something in the text of a response, and the two that count words or read JSON.

What a criterion looks for is prepared once; then each response is searched for it.
"""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dtef_pipeline.rubric.function_score import (
    BAD_PATTERN,
    NESTED_TOO_DEEP,
    PATTERN_TIMEOUT,
    FunctionScore,
    shown,
    unscored,
)
from dtef_pipeline.rubric.patterns import LONGEST_SEARCH, BadPattern, SearchTooLong, compile_pattern, word_count
from dtef_pipeline.text.counted import counted

ScoreText = Callable[[str], FunctionScore]
"""A criterion that is ready: given the text of a response, its score."""


class Wanted(NamedTuple):
    """One thing that is looked for."""

    label: str
    """As explanations show it."""
    found_in: Callable[[str], bool]


@functools.lru_cache(maxsize=256)
def lowered(text: str) -> str:
    """The text in small letters."""
    return text.lower()


def has_word(text: str, word: str) -> bool:
    """Whether a word occurs with no letter, number or underscore on either side; the empty word always does."""
    at = text.find(word)
    while at >= 0 and word:
        end = at + len(word)
        if not (at and _in_words(text[at - 1])) and not (end < len(text) and _in_words(text[end])):
            return True
        at = text.find(word, at + 1)
    return not word


def _in_words(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LN"


_PART_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda text, part: part in text,
    "contains_word": has_word,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}
SEARCHES = (*_PART_TESTS, "matches")
"""What a text can be searched for; each has a form that ignores case, with `i` before its name."""


def wanted(search: str, argument: str, ignore_case: bool) -> Wanted:
    """One thing to look for, prepared; `search` is one of `SEARCHES`. BadPattern where a pattern is none."""
    if search == "matches":
        return Wanted(f"/{argument}/{'i' if ignore_case else ''}", compile_pattern(argument, ignore_case).found_in)
    test = _PART_TESTS[search]
    if not ignore_case:
        return Wanted(shown(argument), lambda text: test(text, argument))
    small = argument.lower()
    return Wanted(shown(argument), lambda text: test(lowered(text), small))


def searching(search: str, family: str, argument: Any, ignore_case: bool) -> ScoreText:
    """The criterion of a search function with a sound argument. `family`: `one`, `any_of`, `all_of` or `at_least_n_of`."""
    n, texts = argument if family == "at_least_n_of" else (0, [argument] if family == "one" else argument)
    try:
        parts = [wanted(search, text, ignore_case) for text in texts]
    except BadPattern as fault:
        return always(unscored(BAD_PATTERN, str(fault)))
    ready = {"one": _one, "any_of": _any_of, "all_of": _all_of}.get(family, functools.partial(_at_least, n))(parts)
    return _within_time(ready) if search == "matches" else ready


def always(score: FunctionScore) -> ScoreText:
    """A criterion that says the same of every response."""
    return lambda text: score


def _within_time(ready: ScoreText) -> ScoreText:
    def score(text: str) -> FunctionScore:
        try:
            return ready(text)
        except SearchTooLong:
            return unscored(PATTERN_TIMEOUT, f"the search took longer than {LONGEST_SEARCH:g} s")

    return score


def _one(parts: list[Wanted]) -> ScoreText:
    (part,) = parts
    yes, no = FunctionScore(1.0, f"found {part.label}"), FunctionScore(0.0, f"did not find {part.label}")
    return lambda text: yes if part.found_in(text) else no


def _any_of(parts: list[Wanted]) -> ScoreText:
    none = FunctionScore(0.0, f"found none of {len(parts)}{_listed(parts)}")

    def score(text: str) -> FunctionScore:
        first = next((part for part in parts if part.found_in(text)), None)
        return none if first is None else FunctionScore(1.0, f"found {first.label}")

    return score


def _all_of(parts: list[Wanted]) -> ScoreText:
    def score(text: str) -> FunctionScore:
        found, explanation = _found(parts, text)
        return FunctionScore(found / len(parts), explanation) if parts else FunctionScore(1.0, "nothing to find")

    return score


def _at_least(n: float, parts: list[Wanted]) -> ScoreText:
    if n <= 0 or not parts:
        return always(FunctionScore(float(n <= 0), f"{n:g} wanted of {len(parts)}"))

    def score(text: str) -> FunctionScore:
        found, explanation = _found(parts, text)
        return FunctionScore(min(1.0, found / n), f"{explanation} ({n:g} wanted)")

    return score


def _found(parts: list[Wanted], text: str) -> tuple[int, str]:
    """How many parts a text has, and that in words."""
    has = [part.found_in(text) for part in parts]
    there = [part for part, is_there in zip(parts, has, strict=True) if is_there]
    missing = [part for part, is_there in zip(parts, has, strict=True) if not is_there]
    not_there = f"; not{_listed(missing)[1:]}" if there and missing else ""
    return len(there), f"found {len(there)} of {len(parts)}{_listed(there)}{not_there}"


def _listed(parts: Iterable[Wanted]) -> str:
    labels = ", ".join(part.label for part in parts)
    return f": {labels}" if labels else ""


def words_between(argument: Any) -> ScoreText:
    """[least, most]: 1 within; below, words / least; above, most / words. Words are runs of what is not white space."""
    least, most = argument

    def score(text: str) -> FunctionScore:
        words = word_count(text)
        points = words / least if words < least else most / words if words > most else 1.0
        return FunctionScore(points, counted(words, "word"))

    return score


def json_text(argument: Any) -> ScoreText:
    """1 where the whole text is a JSON object or array."""
    return json_score


def json_score(text: str) -> FunctionScore:
    """1 where the whole text is a JSON object or array. What is nested too deep for Python to read is unscored."""
    try:
        found = read_json(text)
    except RecursionError:
        return unscored(NESTED_TOO_DEEP, "brackets are nested too deep to be read")
    except ValueError as fault:
        return FunctionScore(0.0, f"no JSON: {fault}")
    is_whole = isinstance(found, (dict, list))
    return FunctionScore(float(is_whole), "a JSON object or array" if is_whole else "JSON, but no object or array")


def read_json(text: str) -> Any:
    """JSON as JavaScript reads it: NaN and Infinity are faults (ValueError), numbers may have any length."""
    return json.loads(text, parse_constant=_refused, parse_int=_whole)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 300 else float(digits)
