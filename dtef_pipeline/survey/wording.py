"""How much two questions have in common in their words: what the rule of batteries is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from dtef_pipeline.identity import normalize_text

STEM_WORDS = 8
"""Words that two neighbours over one scale share as their stem: as many as open `To what extent, if at all, do you trust ...`."""

SAME_SHARE = 0.85
"""Share of words from which two texts over the same options are one question in two wordings: three words of twenty may differ."""

_SHORT_STEM = 3
_IN_BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class Wording:
    """A question reduced to what makes it the same question: words and options without remarks in brackets, punctuation and case."""

    words: tuple[str, ...]
    numbered: frozenset[tuple[str, int]]
    options: frozenset[str]
    asks: bool
    """False of an item that asks nothing by itself, such as `A romantic partner.`: what it is asked of stands before the list."""

    @classmethod
    def reduce_wording(cls, text: str, options: Sequence[str]) -> Wording:
        """Of a question's text and options."""
        asks = text.rstrip().endswith((":", "…", "...")) or "?" in text
        own = split_words(text)
        return cls(own, number_words(own), _normalise_options(options), asks)

    def has_alike_options(self, other: Wording) -> bool:
        """Whether at least half of the longer list of options is in both: a scale with another label or a middle more is the same scale."""
        return 2 * len(self.options & other.options) >= max(len(self.options), len(other.options))

    def has_shared_stem(self, other: Wording) -> bool:
        """Whether the texts differ in one part: what opens and ends both is `STEM_WORDS` long, or half of the longer text and no mere `A`."""
        enough = min(STEM_WORDS, max(_SHORT_STEM, len(self.words) / 2, len(other.words) / 2))
        opening = count_common_words([self.words, other.words])
        ending = count_common_words([self.words[opening:][::-1], other.words[opening:][::-1]])
        return opening + ending >= enough or self.words == other.words

    def is_same_text(self, other: Wording) -> bool:
        """Whether one text is asked again over the same options or regrouped ones, such as `Agree` for `Strongly agree` and `Somewhat agree`.

        `Which statement comes closer to your view?` over two unlike lists of options is two questions.
        """
        return self.words == other.words and (self.has_alike_options(other) or self._is_regrouped(other))

    def is_variant(self, other: Wording) -> bool:
        """Whether it is one question in two wordings, over the same options: `SAME_SHARE` of the words are in both."""
        return self.options == other.options and compute_word_share(self.numbered, other.numbered) >= SAME_SHARE

    def _is_regrouped(self, other: Wording) -> bool:
        """Whether one list of options has no word that the other lacks."""
        own, others = ({word for option in options for word in option.split()} for options in (self.options, other.options))
        return own <= others or others <= own


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text without remarks in brackets; of one that is nothing else, all words."""
    plain = normalize_text(text)
    return tuple(re.findall(r"\w+", _IN_BRACKETS.sub(" ", plain)) or re.findall(r"\w+", plain)) or (plain,)


def number_words(found: Sequence[str]) -> frozenset[tuple[str, int]]:
    """The words, each with how often it came before, so that a set holds those that come twice."""
    before: Counter[str] = Counter()
    pairs = []
    for word in found:
        pairs.append((word, before[word]))
        before[word] += 1
    return frozenset(pairs)


def compute_word_share(one: Set[tuple[str, int]], other: Set[tuple[str, int]]) -> float:
    """Share of the words (`numbered`) of two texts that are in both, from 0 to 1 (Dice, 1945).

    0 for texts that are too short, or too unlike in length for `SAME_SHARE`.
    """
    shorter, both = min(len(one), len(other)), len(one) + len(other)
    if shorter < STEM_WORDS or 2 * shorter < SAME_SHARE * both:
        return 0.0
    return 2 * len(one & other) / both


def _normalise_options(options: Sequence[str]) -> frozenset[str]:
    """The options as they are compared; with their remarks where they differ in these alone."""
    bare = [" ".join(split_words(option)) for option in options]
    return frozenset(bare if len({*bare}) == len(bare) else map(normalize_text, options))


def count_common_words(texts: Sequence[Sequence[str]]) -> int:
    """How many words at the beginning are the same in all texts."""
    return sum(1 for _ in takewhile(lambda words: len({*words}) == 1, zip(*texts, strict=False)))
