"""The words of answer scales, from `scale_words.toml` in this folder: poles with degrees between them, comparisons, words that options share."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any

Words = tuple[tuple[float, str], ...]

TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("dtef_pipeline.survey.answer_scales").joinpath("scale_words.toml").read_text(encoding="utf-8")
)


def join_alternatives(texts: str | Sequence[str]) -> str:
    """Return one pattern of alternatives, which the file has on one or on several lines."""
    return texts if isinstance(texts, str) else "|".join(texts)


def read_places(rows: Sequence[Sequence[Any]]) -> Words:
    """Return the place and the pattern of each row."""
    return tuple((place, join_alternatives(texts)) for place, *texts in rows)


FAMILIES = {name: read_places(rows) for name, rows in TABLES["families"].items()}
"""For each family the place of an option on the scale, and the pattern of its text."""
MODIFYING = (
    *("frequency", "share_of_time", "severity", "level", "class", "working", "kept", "action", "sufficiency", "ever", "rating"),
    "extent",
)
"""Families whose words modify others: `a little help`."""


_POLES = [(name, *map(join_alternatives, sides)) for name, sides in TABLES["poles"].items()]
"""Name, pattern of the pole that counts as +, pattern of the opposite pole; the opposite is looked for first."""
_OPPOSED: list[tuple[str, str]] = [(first, second) for first, second in TABLES["degrees"]["opposed"]]
"""Words that are opposite in two statements with a middle, and say little in other lists."""
_MIDDLE = re.compile(
    r"\b(?:neutral|neither|equal|equally|same|unchanged|average|mixed|(?:maybe|perhaps)(?! (?:will|won|would|should|not|yes|no)\b)"
    r"|no (?:major |real |significant )?(?:change|impact|effect|difference|opinion)|about (?:the )?right|moderate(?! (?:amount|number|extent))"
    r"|cent(?:er|re|rist)|middle of the road|toss-?up"
    r"|not sure|unsure|undecided|might or might not|no more (?:or|no|nor) less)\b"
)
_INTENSITY = read_places(TABLES["degrees"]["intensity"])
_DEGREE_WORDS = re.compile("|".join(rf"\b(?:{words})\b" for _, words in _INTENSITY if not words.startswith("^")))
_PLAIN_INTENSITY = 2.0
_LONGEST_MIDDLE = 10
_LONGEST_HEAD = 6  # words; a longer option is a statement of its own, whatever words it holds

_BALANCED = re.compile(
    r"(?:equally|neither) \w+ (?:and|nor) \w+|(?:\w+ and \w+|they|both)(?: are)? (?:about )?equal(?:ly balanced)?"
)
_UNBALANCED = (
    re.compile(r"(?:(?P<by>much|far|slightly|somewhat) )?more (?P<first>\w+) than (?P<second>\w+)"),
    re.compile(r"(?P<first>\w+)(?: (?P<by>\w+))? outweighs? (?P<second>\w+)"),
)


def place_comparison(head: str) -> float | None:
    """Return the signed intensity of `more excited than concerned`, `risks far outweigh benefits`, `risks and benefits are equal`.

    The alphabetically first side counts as +: the sign only has to be the same for all options of a list.
    """
    if _BALANCED.fullmatch(head):
        return 0.0
    match = next((m for p in _UNBALANCED if (m := p.fullmatch(head))), None)
    if match is None:
        return None
    return _rate_intensity(match["by"] or "") * (1 if match["first"] < match["second"] else -1)


def _rate_intensity(text: str) -> float:
    return next((level for level, words in _INTENSITY if re.search(rf"\b(?:{words})\b", text)), _PLAIN_INTENSITY)


def find_pole_family(heads: Sequence[str]) -> str | None:
    """Return the family of opposites whose signed intensities put all options in order."""
    for name, positive, negative in (*_POLES, *_find_negated_words(heads)):
        places = [_sign_intensity(h, positive, negative) for h in heads]
        signs = [p for p in places if p is not None]
        is_from_middle = len(signs) > 2 and 0 in (min(signs), max(signs))  # `same`, `somewhat worse`, `much worse`
        if len(signs) == len(places) and (is_from_middle or min(signs) < 0 < max(signs)) and is_monotonic(signs):
            return name
    return None


def _find_negated_words(heads: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield poles made from the words of the options: `effective` and `ineffective`, `stricter` and `less strict`."""
    words = {word for head in heads for word in re.findall(r"[a-z]+", head)}
    for word in sorted(words):
        opposite = next((word[len(p) :] for p in ("un", "in", "im", "ir", "il", "dis", "non") if word.startswith(p)), "")
        if len(opposite) > _SHORTEST_STEM and opposite in words:
            yield opposite, opposite, word
    for adjective in sorted({match for head in heads for match in re.findall(r"\bless (\w+)", head)}):
        yield adjective, rf"more {adjective}|{adjective[:-1]}\w{{0,2}}er", f"less {adjective}"


def detect_two_subjects(heads: Sequence[str]) -> str | None:
    """Detect degrees of one, then the other of two things: `definitely A`, `probably A`, `probably B`, `definitely B`."""
    subjects = [_DEGREE_WORDS.sub(" ", head).split() for head in heads]
    named = [" ".join(words) for words, head in zip(subjects, heads, strict=True) if not is_between(head)]
    if len(set(named)) != 2 or min(map(named.count, set(named))) < 2 or "" in named:
        return None
    places = [
        0.0 if is_between(head) else _rate_intensity(head) * (1 if " ".join(words) == named[0] else -1)
        for words, head in zip(subjects, heads, strict=True)
    ]
    return "degrees of two things" if is_monotonic(places) else None


def _sign_intensity(head: str, positive: str, negative: str) -> float | None:
    if len(head.split()) > _LONGEST_HEAD:
        return 0.0 if is_between(head) and len(head.split()) <= _LONGEST_MIDDLE else None
    if _MIDDLE.search(head):
        return 0.0
    if re.search(rf"\b(?:{negative})\b", head):
        return -_rate_intensity(head)
    if re.search(rf"\b(?:{positive})\b", head):
        return _rate_intensity(head)
    return 0.0 if is_between(head) else None


_BETWEEN_OPPOSITES = re.compile(
    r"\b(?:neither|both|equal(?:ly)?|same|even|unchanged|mixed|(?:a )?mix|(?:just|about) (?:the )?right"
    r"|right (?:amount|number|level|balance|mix|pace|speed|size|length)"
    r"|(?:no|not|\w+n['’]t|(?<!too )little) (?:(?!enough\b)\w+ ){0,4}(?:change|impact|effect|difference|influence|preference)"
    r"|(?:not|\w+n['’]t) (?:\w+ )?(?:chang\w+|affect\w*|matter)|half and half|in between|in the middle|share\w*|(?:a )?tie"
    r"|(?:kept|keep(?:s|ing)?|leave|left|stay\w*|remain\w*|maintain\w*|held|hold(?:s|ing)?)\b.*\b(?:is|are|was|now|levels?|steady|constant|stable|alone)"
    r"|(?<!not )(?:about |roughly )?as \w+ as|(?:about|roughly) (?:as \w+|average|what|where|enough)|status quo"
    r"|the right (?!direction|track|side|way)\w+\Z|stand(?:s|ing)? still|stagnat\w+)\b"
    r"|^(?:neutral|moderate|don['’]t mind|maintain(?:ed)?|(?:just |about |equally )?as \w+)\Z"
)
_EQUAL_SHARES = re.compile(
    r"\b(?:equal(?:ly)?|same(?:\Z| (?:as|amount|way|for|in|on|number|level)\b)"
    r"|(?<!make )(?<!makes )no difference|neither (?:is|are|one|has|have)|even|balanced?"
    r"|mixed|mix|no preference)\b"
)
_NEGATIONS = frozenset(TABLES["degrees"]["negations"].split())
_SHORTEST_STEM = 3
_SHORT = 6
"""Words of what can be compared by itself: `men`, `the federal government`."""


@lru_cache(maxsize=1000)
def is_between(head: str) -> bool:
    """Return whether an option means neither or both of two others: `about the same`, `no impact either way`."""
    return bool(_BETWEEN_OPPOSITES.search(head))


def can_have_shares(middle: str, first: str, second: str) -> bool:
    """Return whether an option gives two statements equal shares: `both are treated equally` beside `A are treated unfairly`, `B are
    treated unfairly`.

    Two names that are not opposites (`Doctors`, `Nurses`, `About the same`) have no order. Opposites are `find_opposite_objects`: men and
    women, Democrats and Republicans.
    """
    if middle.startswith("do "):  # `do both equally` is beside two actions
        return False
    shared = set(first.split()) & set(second.split()) - {"the", "a", "an", "of", "and", "in", "on", "for", "to"}
    lengths = len(first.split()), len(second.split())
    if not shared and min(lengths) <= _SHORT:
        return False
    if re.search(r"\bboth\b.*\bequal", middle):
        return True
    is_comparable = max(lengths) <= _SHORT or max(map(len, _compare_words(first, second))) <= 2
    return is_comparable and bool(_EQUAL_SHARES.search(middle))


def find_opposite_objects(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield two options without opposite words: `taxes` and `spending` of `raise taxes` and `cut spending`."""
    poles = [
        (plus, minus)
        for name, plus, minus in (*_POLES, *_find_negated_words([first, second]))
        if name not in ("yes and no", "certainty")
    ]
    for pair in (*poles, *_OPPOSED):
        (first_rest, sign), (second_rest, other_sign) = _remove_pole(first, *pair), _remove_pole(second, *pair)
        if sign * other_sign < 0:
            yield first_rest, second_rest


def is_negated(first: str, second: str) -> bool:
    """Return whether two texts differ only in negations or word order: `A than B` and `B than A`, `has` and `has not`."""
    only_first, only_second = _compare_words(first, second)
    return first != second and only_first | only_second <= _NEGATIONS


def _remove_pole(text: str, positive: str, negative: str) -> tuple[str, int]:
    """Return a text without the words of its pole, and 1 or -1, or 0 if it has neither or both."""
    remainder, negatives = re.subn(rf"\b(?:{negative})\b", " ", text)
    remainder, positives = re.subn(rf"\b(?:{positive})\b", " ", remainder)
    return remainder, bool(positives) - bool(negatives)


def _compare_words(first: str, second: str) -> tuple[set[str], set[str]]:
    first_words, second_words = (set(re.findall(r"[\w'’]+", text.replace("’", "'"))) for text in (first, second))
    return first_words - second_words, second_words - first_words


def is_monotonic(places: Sequence[float]) -> bool:
    steps = [b - a for a, b in pairwise(places)]
    return all(s > 0 for s in steps) or all(s < 0 for s in steps)


def is_known_and_monotonic(places: Sequence[float | None]) -> bool:
    """Return whether all places are known and rise or fall."""
    known_places = [p for p in places if p is not None]
    return len(known_places) == len(places) and is_monotonic(known_places)


def list_word_patterns() -> list[str]:
    poles = [pattern for _, *pair in _POLES for pattern in pair]
    return [*poles, *(words for _, words in _INTENSITY), _MIDDLE.pattern, _BETWEEN_OPPOSITES.pattern]


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
