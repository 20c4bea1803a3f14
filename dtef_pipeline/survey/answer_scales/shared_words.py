"""Words that the options of a list share, such as `priority` in `top priority`, `some priority`, `no priority`, and their other words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from dtef_pipeline.survey.answer_scales.opposites import list_word_patterns
from dtef_pipeline.survey.answer_scales.scale_words import FAMILIES, MODIFYING, TABLES

_OF_DEGREE = frozenset(TABLES["degrees"]["words"].split())
"""Words that carry the place of an option, and are left where they are even if several options have them."""
_OF_GRAMMAR = frozenset(TABLES["degrees"]["grammar"].split())
_STEM_LETTERS = 5
"""Letters by which two forms of a word are one: `problem` and `problems`."""
_OTHER_OPTION = re.compile(
    r"(?:something|someone|somewhere) else|(?:some |any )?other(?: \w+){0,2}(?: \(.*)?|another|none of the above"
)


def remove_shared_words(heads: Sequence[str]) -> list[str]:
    """Return the heads without words that two or more of them contain, except for words of degree."""
    all_words = {word for head in heads for word in _split_option_words(head)}
    plain = [re.sub(r"\b(?:un|in|im|dis)(\w+)", lambda m: f"not {m[1]}" if m[1] in all_words else m[0], head) for head in heads]
    words = [_split_option_words(head) for head in plain]
    counts = Counter(stem for head_words in words for stem in {_strip_word_ending(w) for w in head_words})
    return [" ".join(w for w in head_words if counts[_strip_word_ending(w)] < 2 or w in _OF_DEGREE) for head_words in words]


def remove_common_ends(heads: Sequence[str]) -> list[str]:
    """Return the heads without the words with which all begin or end; unchanged if one would become empty."""
    words = [head.split() for head in heads]
    begin, end = (
        sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*word_lists, strict=False)))
        for word_lists in (words, [w[::-1] for w in words])
    )
    bare = [" ".join(head_words[begin : len(head_words) - end]) for head_words in words]
    return bare if all(bare) else list(heads)


def is_about_one_thing(heads: Sequence[str]) -> bool:
    """Return whether at most one option has a topic of its own, unlike `a little help` and `some money`, and none is `other`."""
    words = [[w.replace("’", "'").partition("'")[0] for w in _split_option_words(head)] for head in heads]
    topics = [{_strip_word_ending(w) for w in head_words if w.isalpha()} - _KNOWN_STEMS for head_words in words]
    counts = Counter(topic for head_topics in topics for topic in head_topics)
    n_own = sum(any(counts[topic] < 2 for topic in head_topics) for head_topics in topics)
    return n_own < 2 and not any(_OTHER_OPTION.fullmatch(head) for head in heads)


def has_same_object(first: str, second: str) -> bool:
    """Return whether two options, without opposite words, have the same object: `raise taxes` and `cut taxes`, not `cut spending`."""
    first_stems, second_stems = (
        {_strip_word_ending(word) for word in _split_option_words(text)} - _STEMS_OF_DEGREE for text in (first, second)
    )
    return first_stems <= second_stems or second_stems <= first_stems


def _strip_word_ending(word: str) -> str:
    return word[:_STEM_LETTERS].rstrip("s").rstrip("e").replace("y", "i")


def _split_option_words(head: str) -> list[str]:
    return re.findall(r"[\w'’$%-]+", head)


_MODIFYING_PATTERNS = [pattern for name in MODIFYING for _, pattern in FAMILIES[name]]
_PATTERNS = re.sub(r"\\[a-zA-Z]", " ", " ".join([*_MODIFYING_PATTERNS, *list_word_patterns()]))
_STEMS_OF_DEGREE = {_strip_word_ending(word) for word in _OF_DEGREE | _OF_GRAMMAR}
_OF_AGES_AND_YEARS = ("younger", "older", "earlier", "later", "before", "after")
_KNOWN_STEMS = {
    _strip_word_ending(word) for word in (*re.findall(r"[a-z]+", _PATTERNS), *_OF_AGES_AND_YEARS)
} | _STEMS_OF_DEGREE
