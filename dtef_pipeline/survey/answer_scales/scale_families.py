"""Families of words that make a list of options a scale, such as frequency, agreement and extent, and their detection."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from dtef_pipeline.survey.answer_scales.opposites import (
    can_have_shares,
    detect_two_subjects,
    find_opposite_objects,
    find_pole_family,
    is_between,
    is_known_and_monotonic,
    is_negated,
    place_comparison,
)
from dtef_pipeline.survey.answer_scales.quantities import place_durations, place_number, place_rate, place_times
from dtef_pipeline.survey.answer_scales.scale_words import (
    ACTION,
    CLASS,
    DIFFICULTY,
    EVER,
    EXTENT,
    FREQUENCY,
    HEARD_OF,
    KEPT,
    LEVEL,
    LIKENESS,
    LIVING,
    PRIORITY,
    RATING,
    RECENCY,
    RELATION,
    SCHOOLING,
    SEVERITY,
    SHARE_OF_TIME,
    SUFFICIENCY,
    THAN_USUAL,
    TIMING,
    WORKING,
)
from dtef_pipeline.survey.answer_scales.shared_words import (
    has_same_object,
    is_about_one_thing,
    remove_common_ends,
    remove_shared_words,
)

_VERBS = r"(?:know|trust|like|care|worry|support|follow|believe|agree|rely|depend|enjoy|help|allow)s?"


def find_scale_family(heads: Sequence[str]) -> str | None:
    """Return the family whose places put all options in order, with or without shared words."""
    name = "numbers between labelled ends" if _has_labelled_ends(heads) else _find_first_in_order(_WHOLE_OPTIONS, heads)
    if not name and len(heads) == 3 and is_between(heads[1]):
        return "two opposites with a middle" if is_middle_of(heads[1], heads[0], heads[2]) else None
    if name or not is_about_one_thing(heads):
        return name
    name = _find_degree_family(heads)
    if name or len(heads) < 3:
        return name
    if sum(h.startswith("yes") for h in heads) == len(heads) - 1 and any(map(_NO.fullmatch, heads)):
        return find_scale_family([re.sub(r"^yes,? (?:but |and )?", "", _NO.sub("never", h)) for h in heads])
    answers = re.findall(r"^(yes|no),? ", "\n".join(heads), re.MULTILINE)
    if len(answers) == len(heads) and min(answers.count("yes"), answers.count("no")) > 1:
        return find_scale_family([re.sub(r"^(?:yes|no),? ", "", h) for h in heads])
    if any({place(h) for h in heads} >= {0, 1} and is_known_and_monotonic([place(h) for h in heads]) for place in _STANDINGS):
        return "in full, in part or never"
    bare = remove_common_ends(heads)
    if bare != list(heads) and (name := _find_first_in_order(_WHOLE_OPTIONS, bare)):
        return name
    remainders = remove_shared_words(heads)
    return (
        _find_first_in_order(_BARE_DEGREES, list(map(_extract_bare_degree, remainders)))
        or find_pole_family(remainders)
        or detect_two_subjects(heads)
    )


_NO = re.compile(r"^no(?:,? (?:never|none|not at all))?\Z")


def _find_first_in_order(families: Families, heads: Sequence[str]) -> str | None:
    """Return the first family that has a place for every option, in order."""
    return next((name for name, place in families if is_known_and_monotonic([place(h) for h in heads])), None)


def _find_degree_family(heads: Sequence[str]) -> str | None:
    name = _find_first_in_order(_PARTS_OF_OPTIONS, heads)
    if name:
        return name
    if is_known_and_monotonic([_place_extent(h) for h in _add_plain_degree(heads)]):
        return "extent"
    if len(heads) > 2 and is_known_and_monotonic(place_durations(heads)):
        return "length of time"
    if is_known_and_monotonic(place_times(heads)) and len(heads) > 1:
        return "numbers of times"
    return find_pole_family(heads)


def is_middle_of(middle: str, first: str, second: str) -> bool:
    """Return whether an option is both, neither or about the same, beside opposites of one object or two compared statements."""
    if not is_between(middle) or is_between(first) or is_between(second):
        return False
    objects = list(find_opposite_objects(first, second))
    if objects:
        return any(has_same_object(*pair) for pair in objects)
    return is_negated(first, second) or can_have_shares(middle, first, second)


def _has_labelled_ends(heads: Sequence[str]) -> bool:
    """Return whether the options are consecutive numbers with words at the ends: `Very bad | 2 | 3 | 4 | Very good`."""
    inner = [place_number(h) for h in heads[1:-1]]
    if (
        place_number(heads[0]) is not None
        or len(inner) < 3
        or None in inner
        or not all(re.fullmatch(r"\d+(?:\.0)?", h) for h in heads[1:-1])
    ):
        return False
    steps = {b - a for a, b in pairwise(n for n in inner if n is not None)}
    return steps in ({1.0}, {-1.0}) and not {heads[0], heads[-1]} & {"other", "none", "none of these", "all"}


def _add_plain_degree(heads: Sequence[str]) -> list[str]:
    """Replace `close` beside `very close` and `not close at all` by `moderately close`."""
    return [
        f"moderately {h}" if " " not in h and any(re.search(rf" {re.escape(h)}(?: at all)?\Z", o) for o in heads) else h
        for h in heads
    ]


def _make_lookup(table: tuple[tuple[float, str], ...], tail: str = "", prefix: str = "") -> Callable[[str], float | None]:
    patterns = [(place, re.compile(f"{prefix}(?:{pattern}){tail}")) for place, pattern in table]
    return lambda head: next((place for place, pattern in patterns if pattern.fullmatch(head)), None)


_place_of_extent = _make_lookup(
    EXTENT, tail=r"(?: (?!and\b)\w+){0,2}(?: or \w+)?(?: who .*| to come .*)?", prefix=r"(?:i know |i am )?"
)


def _place_extent(head: str) -> float | None:
    """Return the place of `very much`, `trust completely`, `do not trust at all`."""
    head = re.sub(r"^(?:i )?(?:do not|don['’]?t|have not|haven['’]?t) \w+ anything\b", "nothing", head)
    text = re.sub(rf"^(?:i )?(?:do not|don['’]?t) {_VERBS}(?: (?:it|them))?(?= |\Z)", "not", head)
    return _place_of_extent(re.sub(rf"^(?:i )?(?:{_VERBS}|bothered|heard)(?: (?:it|them))? (?=\w)", "", text))


_ARTICLE = re.compile(
    r"\b(?:an?|the) (?!lot\b|little\b|few\b|bit\b|great|good|fair|moderate|large|small|major|minor|big|year|month|week|day|time)"
)
_NOT_BARE = re.compile(
    r"^(?:there|are|is|be|it|do|does|did|would|have|has|of|to|in|under)\s+|\s+(?:of|an?|the|in|on|for|to|is|are|be)\Z"
)


def _extract_bare_degree(text: str) -> str:
    """Return the degree of an option without shared words: `not too of a` is `not too`, a blank is the plain degree."""
    text = re.sub(r"^(?:do|does|did)(?: not|n['’]?t)\b", "not", re.sub(r",? but .*", "", text))
    text = _ARTICLE.sub("", f"{text} ").strip(" .,;")
    while (shorter := _NOT_BARE.sub("", text)) != text:
        text = shorter
    return text or "moderately"


_place_of_frequency = _make_lookup(FREQUENCY)


def _place_frequency(head: str) -> float | None:
    """Return the place of `often`, `yes, sometimes`, `weekly or more often`."""
    bare = re.sub(r"^yes,? | or more(?: often)?\Z", "", head)
    places = (find(text) for text in (head, bare) for find in (_place_of_frequency, place_rate))
    return next((place for place in places if place is not None), None)


Families = tuple[tuple[str, Callable[[str], float | None]], ...]
_WHOLE_OPTIONS: Families = (
    ("frequency", _place_frequency),
    ("comparison", place_comparison),
    ("rating", _make_lookup(RATING)),
    ("share of time", _make_lookup(SHARE_OF_TIME)),
    ("likeness", _make_lookup(LIKENESS)),
    ("comparison with the usual", _make_lookup(THAN_USUAL)),
    ("difficulty", _make_lookup(DIFFICULTY)),
    ("living", _make_lookup(LIVING, prefix=r"(?:i |we |they )?", tail=r"(?: on .*)?")),
    ("class", _make_lookup(CLASS, tail=r"(?: class| income)?", prefix=r"(?:the )?")),
    ("priority", _make_lookup(PRIORITY)),
    ("relation", _make_lookup(RELATION)),
    ("timing", _make_lookup(TIMING)),
    (
        "working time",
        _make_lookup(WORKING, prefix=r"(?:(?:working|employed) )?", tail=r"(?: (?:for pay|work|job))*(?: at all)?"),
    ),
    ("schooling", _make_lookup(SCHOOLING)),
    ("recency", _make_lookup(RECENCY)),
    ("knowledge", _make_lookup(HEARD_OF)),
)
_PARTS_OF_OPTIONS: Families = (
    ("numbers", place_number),
    ("adequacy", _make_lookup(SUFFICIENCY)),
    ("severity", _make_lookup(SEVERITY, tail=r"(?: (?!and\b)\w+){0,4}", prefix=r"(?:i (?:have )?)?(?:an? )?")),
    ("level", _make_lookup(LEVEL, tail=r"(?: \w+)?")),
    ("extent", _place_extent),
)
_STANDINGS = (_make_lookup(EVER), _make_lookup(ACTION), _make_lookup(KEPT))
_BARE_DEGREES: Families = (
    ("extent", _make_lookup(EXTENT)),
    ("frequency", _place_frequency),
    ("share of time", _make_lookup(SHARE_OF_TIME)),
    ("working time", _make_lookup(WORKING)),
    ("class", _make_lookup(CLASS)),
    ("rating", _make_lookup(RATING)),
    ("level", _make_lookup(LEVEL)),
    ("severity", _make_lookup(SEVERITY)),
)
