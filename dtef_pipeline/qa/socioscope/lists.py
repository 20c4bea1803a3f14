"""ListOne and ListMany: an answer in free text names one or several values of a metric.

Values are compared word by word (`words`). Negations are not read: `not a car` names the car.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from dtef_pipeline.qa.metric import MetricValue, fold_to_ascii, parse_metric
from dtef_pipeline.qa.model import OK_STATUS, UNPARSEABLE_STATUS, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.socioscope.words import (
    WordsOf,
    extract_folded_answer,
    find_synonyms,
    split_folded_words,
    strip_thousands_commas,
    words,
)

_ITEM_ENDS = re.compile(r"[,;&\n]+")
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|\(?[0-9]{1,3}[.)][ \t]+)", re.MULTILINE)
_ALL_NEGATIVE = "no value has a weight above 0"


class ListOne:
    """A scorer: the weight of the value mentioned first, 0 for none."""

    name = "list_one"
    version = 3
    uses_lexicon = True

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; `options` do not matter. Several different values are flagged `multi`, and score 0 if `strict` is set."""
        values = parse_metric(reference)
        if not values:
            return make_unscorable()
        names = ValueNames(values, [find_synonyms(value.text, settings) for value in values])

        def score(response: WrittenResponse) -> ItemScore:
            text = split_folded_words(extract_folded_answer(response.text))
            if not text:
                return score_unreadable(EMPTY_ANSWER)
            hits = names.find_values(text)
            if not hits:
                return ItemScore(OK_STATUS, 0.0, details={"found": []})
            named = _order_by_mention(hits)
            value = 0.0 if settings.strict and len(named) > 1 else clip_to_0_1(values[named[0]].weight)
            return ItemScore(OK_STATUS, value, hits[0].read_by, flag_values(hits), {"found": [values[i].text for i in named]})

        return score


class ListMany:
    """A scorer: the weights of all named values, as a share of the metric's maximum."""

    name = "list_many"
    version = 3
    uses_lexicon = True

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; `options` do not matter."""
        values, penalty = parse_metric(reference), settings.penalty
        if not values:
            return make_unscorable()
        coverage = Coverage(values, settings)
        if not coverage.most:
            return make_unscorable(_ALL_NEGATIVE)

        def score(response: WrittenResponse) -> ItemScore:
            text = split_listed_words(extract_folded_answer(response.text))
            if not text.words:
                return score_unreadable(EMPTY_ANSWER, raw=None)
            hits = coverage.names.find_values(text.words)
            return coverage.score(hits, penalty * (text.count_items_without(hits) if penalty else 0))

        return score


class Coverage:
    """The part of a metric that a text names."""

    def __init__(self, values: Sequence[MetricValue], settings: ScorerSettings) -> None:
        self.values = values
        self.names = ValueNames(values, [find_synonyms(value.text, settings) for value in values])
        self.most = math.fsum(max(values[index].weight, 0.0) for index in sorted(set(self.names.canonical)))
        """Sum of the weights above 0 of distinct values."""

    def score(self, hits: Sequence[NamedValue], taken_off: float = 0.0) -> ItemScore:
        """Score the named values: `raw` is the sum of their weights, each counted once, less deductions; the value is its share of
        `most`."""
        named = _order_by_mention(hits)
        raw = math.fsum(self.values[index].weight for index in named) - taken_off
        flags = tuple(flag for flag in flag_values(hits) if flag != SEVERAL_VALUES)
        details = {"raw": raw, "found": [self.values[index].text for index in named]}
        return ItemScore(OK_STATUS, clip_to_0_1(raw / self.most), hits[0].read_by if hits else None, flags, details)


class ListedWords(NamedTuple):
    """The words of an answer, and the end of each item among them."""

    words: list[str]
    ends: list[int]

    def count_items_without(self, hits: Iterable[NamedValue]) -> int:
        """Return the number of items that have words, but none in the name of a value."""
        positions = {place for hit in hits for place in range(hit.start, hit.end)}
        places = (range(*item) for item in pairwise((0, *self.ends)))
        items = [[place for place in item if self.words[place] != "and"] for item in places]
        return sum(bool(item) and positions.isdisjoint(item) for item in items)


def split_listed_words(text: str) -> ListedWords:
    """Split a folded answer, a JSON list or a text, into words and items. Items end at `,`, `;`, `&`, `and` and the end of a line."""
    parts = [split_folded_words(part) for part in _split_items(text)]
    tokens: list[str] = []
    ends = []
    for part in parts:
        for word in part:
            if word == "and":
                ends.append(len(tokens))
            tokens.append(word)
        ends.append(len(tokens))
    return ListedWords(tokens, ends)


def _split_items(text: str) -> list[str]:
    if text.lstrip().startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError):
            entries = None
        if isinstance(entries, list) and all(isinstance(entry, (str, int, float)) for entry in entries):
            return [fold_to_ascii(str(entry)) for entry in entries]
    return _ITEM_ENDS.split(strip_thousands_commas(_LIST_MARK.sub("", text)))


def _order_by_mention(hits: Iterable[NamedValue]) -> list[int]:
    """Return the numbers of the named values, in order of first mention and without duplicates."""
    return list(dict.fromkeys(hit.value for hit in hits))


def flag_values(hits: Sequence[NamedValue]) -> tuple[str, ...]:
    """Return `multi` for several different values, `ambiguous_synonym` for a name that belongs to several."""
    flags = {SEVERAL_VALUES: len({hit.value for hit in hits}) > 1, SHARED_SYNONYM: any(hit.is_shared for hit in hits)}
    return tuple(flag for flag, is_set in flags.items() if is_set)


NAME_KINDS = ("value", "alias", "synonym")
"""Kinds of names, in the order of their precedence."""


class _Claim(NamedTuple):
    """A value that a name may belong to. Claims are ordered: the smallest wins the name."""

    kind: int
    """Place in NAME_KINDS."""
    negated_weight: float
    """The negated weight."""
    value: int


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value that a text names."""

    value: int
    """Its number, from 0 on."""
    start: int
    """Start and end (exclusive) of the words that name it."""
    end: int
    read_by: str
    """One of NAME_KINDS."""
    is_shared: bool
    """Whether the alias or synonym belongs to another value too, one of lower weight."""


class ValueNames:
    """The names of a metric's values, indexed for searching.

    Values with the same words, such as `car` and `cars`, are one value, that of the higher weight.
    """

    def __init__(self, values: Sequence[MetricValue], synonyms: Sequence[Iterable[WordsOf]] = ()) -> None:
        """`synonyms`: the words of the synonyms of each value; empty: no value has synonyms."""
        keys = [tuple(words(value.text)) for value in values]
        heaviest: dict[WordsOf, int] = {}
        for number, value in enumerate(values):
            if value.weight > values[heaviest.setdefault(keys[number], number)].weight:
                heaviest[keys[number]] = number
        self.canonical = tuple(heaviest[name] for name in keys)
        """The number of the value that each value counts as: its own, except for values with the same words."""
        claims: defaultdict[WordsOf, set[_Claim]] = defaultdict(set)
        for number, value in enumerate(values):
            counts_as = self.canonical[number]
            name_groups = ([keys[number]], map(tuple, map(words, value.aliases)), synonyms[number] if synonyms else ())
            for kind, names in enumerate(name_groups):
                for name in names:
                    claims[name].add(_Claim(kind, -values[counts_as].weight, counts_as))
        claims.pop((), None)
        self._winner = {name: min(rivals) for name, rivals in claims.items()}
        self._shared = {name for name, rivals in claims.items() if len(rivals) > 1 and _is_shared(rivals)}
        self._lengths: dict[str, list[int]] = defaultdict(list)
        for first, length in sorted({(name[0], len(name)) for name in claims}):
            self._lengths[first].append(length)

    def find_values(self, text: Sequence[str]) -> list[NamedValue]:
        """Return the values that a text names, in order. The longest names are matched first, and each word belongs to only one name."""
        hits = sorted(self._find_everywhere(text), key=lambda hit: (hit.start - hit.end, hit.start))
        positions: set[int] = set()
        selection = []
        for hit in hits:
            places = range(hit.start, hit.end)
            if positions.isdisjoint(places):
                positions.update(places)
                selection.append(hit)
        return sorted(selection, key=lambda hit: hit.start)

    def _find_everywhere(self, text: Sequence[str]) -> Iterator[NamedValue]:
        for start, word in enumerate(text):
            for length in self._lengths.get(word, ()):
                # At the end of the text there are fewer words, which may be another name.
                name = tuple(text[start : start + length])
                if len(name) == length and (winner := self._winner.get(name)) is not None:
                    kind = NAME_KINDS[winner.kind]
                    yield NamedValue(winner.value, start, start + length, kind, name in self._shared)


def _is_shared(rivals: Collection[_Claim]) -> bool:
    """Return whether several values share a name that is the own name of none."""
    best = min(rivals).kind
    return best > 0 and len({claim.value for claim in rivals if claim.kind == best}) > 1


EMPTY_ANSWER, UNPARSED, SEVERAL_VALUES = "empty", "unparsed", "multi"
AMBIGUOUS, SHARED_SYNONYM = "ambiguous", "ambiguous_synonym"
"""Flags: no words; no answer among them; several values; both yes and no; a synonym of two values."""


def score_unreadable(flag: str, **details: Any) -> ItemScore:
    """Return the score of an unreadable reply, with its flag."""
    return ItemScore(UNPARSEABLE_STATUS, flags=(flag,), details=details)


def make_unscorable(reason: str = "the metric is empty") -> ScoreResponse:
    """Return a scoring function for an item that cannot be scored."""
    score = ItemScore("unscorable", reason=reason)
    return lambda response: score


def clip_to_0_1(value: float) -> float:
    """Clip the value to 0-1."""
    return min(max(value, 0.0), 1.0) + 0.0  # no negative zero
