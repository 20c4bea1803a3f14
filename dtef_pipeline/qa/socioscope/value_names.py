"""Finding the values of a metric in the words of a text: by their own names, by aliases, by synonyms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtef_pipeline.qa.metric import MetricValue
from dtef_pipeline.qa.socioscope.lexicon import WordsOf
from dtef_pipeline.qa.socioscope.words import words

NAME_KINDS = ("value", "alias", "synonym")
"""What a name is, from the one that counts most."""


class _Claim(NamedTuple):
    """A value that a name may stand for. Claims are ordered: the least wins the name."""

    kind: int
    """Place in NAME_KINDS."""
    against: float
    """The weight with its sign turned."""
    value: int


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value that a text names."""

    value: int
    """Its number, from 0."""
    start: int
    """The first of the words that name it, and the one after the last."""
    end: int
    how: str
    """One of NAME_KINDS."""
    is_shared: bool
    """Whether the same alias or synonym belongs to another value too: this one has the higher weight."""


class ValueNames:
    """The names of the values of a metric, ready to be found.

    Values whose words are the same, such as `car` and `cars`, are one: the one of the higher weight.
    """

    def __init__(self, values: Sequence[MetricValue], synonyms: Sequence[Iterable[WordsOf]] = ()) -> None:
        """`synonyms`: the words of the synonyms of each value; none at all: no value has any."""
        own = [tuple(words(value.text)) for value in values]
        heaviest: dict[WordsOf, int] = {}
        for number, value in enumerate(values):
            if value.weight > values[heaviest.setdefault(own[number], number)].weight:
                heaviest[own[number]] = number
        self.canonical = tuple(heaviest[name] for name in own)
        """The number of the value that each value counts as: its own, but for values whose words are the same."""
        claims: defaultdict[WordsOf, set[_Claim]] = defaultdict(set)
        for number, value in enumerate(values):
            counts_as = self.canonical[number]
            of_kinds = ([own[number]], map(tuple, map(words, value.aliases)), synonyms[number] if synonyms else ())
            for kind, names in enumerate(of_kinds):
                for name in names:
                    claims[name].add(_Claim(kind, -values[counts_as].weight, counts_as))
        claims.pop((), None)
        self._winner = {name: min(rivals) for name, rivals in claims.items()}
        self._shared = {name for name, rivals in claims.items() if len(rivals) > 1 and _is_shared(rivals)}
        self._lengths: dict[str, list[int]] = defaultdict(list)
        for first, length in sorted({(name[0], len(name)) for name in claims}):
            self._lengths[first].append(length)

    def found_in(self, text: Sequence[str]) -> list[NamedValue]:
        """The values that a text names, in its order. The longest names are found first, and their words are used up."""
        found = sorted(self._everywhere(text), key=lambda one: (one.start - one.end, one.start))
        used: set[int] = set()
        kept = []
        for one in found:
            places = range(one.start, one.end)
            if used.isdisjoint(places):
                used.update(places)
                kept.append(one)
        return sorted(kept, key=lambda one: one.start)

    def _everywhere(self, text: Sequence[str]) -> Iterator[NamedValue]:
        for start, word in enumerate(text):
            for length in self._lengths.get(word, ()):
                # At the end of the text there are fewer words, which may be another name.
                name = tuple(text[start : start + length])
                if len(name) == length and (winner := self._winner.get(name)) is not None:
                    how = NAME_KINDS[winner.kind]
                    yield NamedValue(winner.value, start, start + length, how, name in self._shared)


def _is_shared(rivals: Collection[_Claim]) -> bool:
    """Whether several values have a name that is the own name of none."""
    best = min(rivals).kind
    return best > 0 and len({claim.value for claim in rivals if claim.kind == best}) > 1
