"""The similarity of the wordings of two questions, for the rule of batteries."""

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
    """A question reduced to words and options, without remarks in brackets, punctuation and case, to identify the same question."""

    words: tuple[str, ...]
    numbered: frozenset[tuple[str, int]]
    options: frozenset[str]
    asks: bool
    """False for an item that is not a question by itself, such as `A romantic partner.`, whose question is before the list."""

    @classmethod
    def reduce_wording(cls, text: str, options: Sequence[str]) -> Wording:
        """Return the wording of a question's text and options."""
        asks = text.rstrip().endswith((":", "…", "...")) or "?" in text
        words = split_words(text)
        return cls(words, number_words(words), _normalise_options(options), asks)

    def has_alike_options(self, wording: Wording) -> bool:
        """Return whether at least half of the longer list of options is in both. Another label or an additional middle does not change a
        scale.
        """
        return 2 * len(self.options & wording.options) >= max(len(self.options), len(wording.options))

    def has_shared_stem(self, wording: Wording) -> bool:
        """Return whether the texts differ in one part: their common beginning and end have `STEM_WORDS` words, or at least three and half
        of the longer text.
        """
        enough = min(STEM_WORDS, max(_SHORT_STEM, len(self.words) / 2, len(wording.words) / 2))
        opening = count_common_words([self.words, wording.words])
        ending = count_common_words([self.words[opening:][::-1], wording.words[opening:][::-1]])
        return opening + ending >= enough or self.words == wording.words

    def is_same_text(self, wording: Wording) -> bool:
        """Return whether the text is repeated with the same options or regrouped ones, such as `Agree` for `Strongly agree` and `Somewhat
        agree`.

        `Which statement comes closer to your view?` over two unlike lists of options is two questions.
        """
        if self.words != wording.words:
            return False
        words, others = ({word for option in options for word in option.split()} for options in (self.options, wording.options))
        return self.has_alike_options(wording) or words <= others or others <= words

    def is_variant(self, wording: Wording) -> bool:
        """Return whether both are wordings of one question, with the same options: `SAME_SHARE` of the words are in both."""
        return self.options == wording.options and compute_word_share(self.numbered, wording.numbered) >= SAME_SHARE


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without remarks in brackets, or all words if it has no others."""
    plain = normalize_text(text)
    return tuple(re.findall(r"\w+", _IN_BRACKETS.sub(" ", plain)) or re.findall(r"\w+", plain)) or (plain,)


def number_words(words: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Return the words with the number of earlier occurrences, so that a set keeps repeated words."""
    before: Counter[str] = Counter()
    pairs = []
    for word in words:
        pairs.append((word, before[word]))
        before[word] += 1
    return frozenset(pairs)


def compute_word_share(first: Set[tuple[str, int]], second: Set[tuple[str, int]]) -> float:
    """Return the share of the words (from `number_words`) of two texts that are in both, from 0 to 1 (Dice, 1945).

    0 for texts that are too short, or too unlike in length for `SAME_SHARE`.
    """
    shorter, total = min(len(first), len(second)), len(first) + len(second)
    if shorter < STEM_WORDS or 2 * shorter < SAME_SHARE * total:
        return 0.0
    return 2 * len(first & second) / total


def _normalise_options(options: Sequence[str]) -> frozenset[str]:
    """Return the options in the form for comparison, with their remarks if they differ only in these."""
    bare = [" ".join(split_words(option)) for option in options]
    return frozenset(bare if len({*bare}) == len(bare) else map(normalize_text, options))


def count_common_words(texts: Sequence[Sequence[str]]) -> int:
    """Return the number of equal words at the beginning of all texts."""
    return sum(1 for _ in takewhile(lambda words: len({*words}) == 1, zip(*texts, strict=False)))
