"""ListOne and ListMany: an answer in free words names one value of a metric, or many.

Values are compared word by word (`words`). There is no reading of negations: `not a car` names the car.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.metric import MetricValue, parse_metric
from dtef_pipeline.qa.model import OK_STATUS, ItemScore, ScorerSettings, ScoreWritten, Written
from dtef_pipeline.qa.normalise import folded
from dtef_pipeline.qa.socioscope.lexicon import synonyms_of
from dtef_pipeline.qa.socioscope.unscored import (
    EMPTY_ANSWER,
    SEVERAL_VALUES,
    SHARED_SYNONYM,
    nothing_expected,
    unreadable,
    within_0_and_1,
)
from dtef_pipeline.qa.socioscope.value_names import NamedValue, ValueNames
from dtef_pipeline.qa.socioscope.words import answer_of, without_thousands_commas, words_of_folded

_ITEM_ENDS = re.compile(r"[,;&\n]+")
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|\(?[0-9]{1,3}[.)][ \t]+)", re.MULTILINE)
_ALL_NEGATIVE = "no value has a weight above 0"


class ListOne:
    """The weight of the value that the answer mentions first, 0 for none."""

    name = "list_one"
    version = 3
    uses_lexicon = True

    def for_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreWritten:
        """As in `Scorer`; `options` do not matter. Several different values have the flag `multi`, and count 0 where `strict` is set."""
        values = parse_metric(reference)
        if not values:
            return nothing_expected()
        names = ValueNames(values, [synonyms_of(value.text, settings) for value in values])

        def score(written: Written) -> ItemScore:
            text = words_of_folded(answer_of(written.text))
            if not text:
                return unreadable(EMPTY_ANSWER)
            found = names.found_in(text)
            if not found:
                return ItemScore(OK_STATUS, 0.0, own={"found": []})
            named = _in_order(found)
            value = 0.0 if settings.strict and len(named) > 1 else within_0_and_1(values[named[0]].weight)
            return ItemScore(OK_STATUS, value, found[0].how, flags_of(found), {"found": [values[one].text for one in named]})

        return score


class ListMany:
    """The weights of all values that the answer names, as a share of what the metric gives at most."""

    name = "list_many"
    version = 3
    uses_lexicon = True

    def for_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreWritten:
        """As in `Scorer`; `options` do not matter. Raises ConfigError for a penalty outside 0-1."""
        values, penalty = parse_metric(reference), checked_penalty(settings)
        if not values:
            return nothing_expected()
        coverage = Coverage(values, settings)
        if not coverage.most:
            return nothing_expected(_ALL_NEGATIVE)

        def score(written: Written) -> ItemScore:
            text = listed_words(answer_of(written.text))
            if not text.words:
                return unreadable(EMPTY_ANSWER, raw=None)
            found = coverage.names.found_in(text.words)
            return coverage.score(found, penalty * (text.items_without(found) if penalty else 0))

        return score


class Coverage:
    """How much of a metric a text names."""

    def __init__(self, values: Sequence[MetricValue], settings: ScorerSettings) -> None:
        self.values = values
        self.names = ValueNames(values, [synonyms_of(value.text, settings) for value in values])
        self.most = math.fsum(max(values[one].weight, 0.0) for one in sorted(set(self.names.canonical)))
        """The sum of the weights above 0, of values that differ."""

    def score(self, found: Sequence[NamedValue], taken_off: float = 0.0) -> ItemScore:
        """`raw`: the sum of the weights of the values that are named, each once, less what is taken off; the value: its share of `most`."""
        named = _in_order(found)
        raw = math.fsum(self.values[one].weight for one in named) - taken_off
        flags = tuple(flag for flag in flags_of(found) if flag != SEVERAL_VALUES)
        own = {"raw": raw, "found": [self.values[one].text for one in named]}
        return ItemScore(OK_STATUS, within_0_and_1(raw / self.most), found[0].how if found else None, flags, own)


class ListedWords(NamedTuple):
    """The words of an answer, and where each of its items ends in them."""

    words: list[str]
    ends: list[int]

    def items_without(self, found: Iterable[NamedValue]) -> int:
        """How many items have words, and none of them in the name of a value."""
        used = {place for one in found for place in range(one.start, one.end)}
        places = (range(*item) for item in pairwise((0, *self.ends)))
        items = [[place for place in item if self.words[place] != "and"] for item in places]
        return sum(bool(item) and used.isdisjoint(item) for item in items)


def listed_words(text: str) -> ListedWords:
    """The words of a folded answer that is a JSON list or a text. Items end at `,`, `;`, `&`, `and` and the end of a line."""
    parts = [words_of_folded(part) for part in _items(text)]
    found: list[str] = []
    ends = []
    for part in parts:
        for word in part:
            if word == "and":
                ends.append(len(found))
            found.append(word)
        ends.append(len(found))
    return ListedWords(found, ends)


def _items(text: str) -> list[str]:
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and all(isinstance(one, (str, int, float)) for one in listed):
            return [folded(str(one)) for one in listed]
    return _ITEM_ENDS.split(without_thousands_commas(_LIST_MARK.sub("", text)))


def _in_order(found: Iterable[NamedValue]) -> list[int]:
    """The numbers of the values that are named, each once, in the order of their first mention."""
    return list(dict.fromkeys(one.value for one in found))


def flags_of(found: Sequence[NamedValue]) -> tuple[str, ...]:
    """`multi` for several different values, `ambiguous_synonym` for a name that belongs to several."""
    flags = {SEVERAL_VALUES: len({one.value for one in found}) > 1, SHARED_SYNONYM: any(one.is_shared for one in found)}
    return tuple(flag for flag, is_set in flags.items() if is_set)


def checked_penalty(settings: ScorerSettings) -> float:
    """The penalty. Raises ConfigError for one outside 0-1."""
    if not 0 <= settings.penalty <= 1:
        raise ConfigError(f"penalty: got {settings.penalty!r}; allowed: a number from 0 to 1")
    return settings.penalty
