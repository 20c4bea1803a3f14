"""How much two questions have in common in their words: what the rule of batteries is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from dtef_pipeline.identity import normalized

STEM_WORDS = 8
"""Words in a row that make a stem: as many open `To what extent, if at all, do you trust ...`, and no common phrase is as long."""

SAME_SHARE = 0.85
"""Share of words from which two texts over the same options are one question in two wordings: three words of twenty may differ."""

_SHORT_STEM = 3
_IN_BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class Wording:
    """A question reduced to what makes it the same question: words and options without remarks in brackets, punctuation and case."""

    words: tuple[str, ...]
    options: frozenset[str]
    asks: bool
    """False of an item that asks nothing by itself, such as `A romantic partner.`: what it is asked of stands before the list."""

    @classmethod
    def of(cls, text: str, options: Sequence[str]) -> Wording:
        """Of a question's text and options."""
        asks = text.rstrip().endswith((":", "…", "...")) or "?" in text
        return cls(words(text), _options(options), asks)

    def options_alike(self, other: Wording) -> bool:
        """Whether at least half of the longer list of options is in both: a scale with another label or a middle more is the same scale."""
        return 2 * len(self.options & other.options) >= max(len(self.options), len(other.options))

    def shares_stem(self, other: Wording) -> bool:
        """Whether the texts differ in one part: what opens and ends both is `STEM_WORDS` long, or half of the longer text and no mere `A`."""
        enough = min(STEM_WORDS, max(_SHORT_STEM, len(self.words) / 2, len(other.words) / 2))
        opening = _common(self.words, other.words)
        ending = _common(self.words[opening:][::-1], other.words[opening:][::-1])
        return opening + ending >= enough or self.words == other.words

    def is_same_text(self, other: Wording) -> bool:
        """Whether one text is asked again over the same options or regrouped ones.

        Short texts (`Do you agree?`, `Which statement fits best?`) say too little to be one question over unlike options.
        """
        return self.words == other.words and (len(self.words) >= STEM_WORDS or self.options_alike(other))

    def is_variant(self, other: Wording) -> bool:
        """Whether it is one question in two wordings, over the same options: `SAME_SHARE` of the words are in both."""
        return self.options == other.options and share(self.words, other.words) >= SAME_SHARE


def words(text: str) -> tuple[str, ...]:
    """The words of a text without remarks in brackets; of one that is nothing else, all words."""
    plain = normalized(text)
    return tuple(re.findall(r"\w+", _IN_BRACKETS.sub(" ", plain)) or re.findall(r"\w+", plain)) or (plain,)


def share(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of the words of two texts that are in both, from 0 to 1 (Dice, 1945); 0 for texts too short for it to say something."""
    if min(len(one), len(other)) < STEM_WORDS:
        return 0.0
    return 2 * (Counter(one) & Counter(other)).total() / (len(one) + len(other))


def _options(options: Sequence[str]) -> frozenset[str]:
    """The options as they are compared; with their remarks where they differ in these alone."""
    bare = [" ".join(words(option)) for option in options]
    return frozenset(bare if len({*bare}) == len(bare) else map(normalized, options))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
