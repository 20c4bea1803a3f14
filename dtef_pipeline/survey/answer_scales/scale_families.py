"""Families of words that make a list of options a scale: frequency, agreement, extent, and others; which of them a list is of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from dtef_pipeline.survey.answer_scales.opposites import (
    are_negated,
    comparison,
    in_order_if_known,
    is_between,
    may_have_shares,
    objects_of_opposites,
    pole_family,
    two_subjects,
)
from dtef_pipeline.survey.answer_scales.quantities import durations, number, place_of_rate, times
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
    about_one_thing,
    have_same_object,
    remove_common_ends,
    without_shared_words,
)

_VERBS = r"(?:know|trust|like|care|worry|support|follow|believe|agree|rely|depend|enjoy|help|allow)s?"


def family_of(heads: Sequence[str]) -> str | None:
    """The family of words whose places put all options in order, by themselves or by what they do not share."""
    name = "numbers between labelled ends" if _between_labelled_ends(heads) else _first_in_order(_WHOLE_OPTIONS, heads)
    if not name and len(heads) == 3 and is_between(heads[1]):
        return "two opposites with a middle" if is_middle_of(heads[1], heads[0], heads[2]) else None
    if name or not about_one_thing(heads):
        return name
    name = _family_of_degrees(heads)
    if name or len(heads) < 3:
        return name
    if sum(h.startswith("yes") for h in heads) == len(heads) - 1 and any(map(_NO.fullmatch, heads)):
        return family_of([re.sub(r"^yes,? (?:but |and )?", "", _NO.sub("never", h)) for h in heads])
    answers = re.findall(r"^(yes|no),? ", "\n".join(heads), re.MULTILINE)
    if len(answers) == len(heads) and min(answers.count("yes"), answers.count("no")) > 1:
        return family_of([re.sub(r"^(?:yes|no),? ", "", h) for h in heads])
    if any({place(h) for h in heads} >= {0, 1} and in_order_if_known([place(h) for h in heads]) for place in _STANDINGS):
        return "in full, in part or never"
    bare = remove_common_ends(heads)
    if bare != list(heads) and (name := _first_in_order(_WHOLE_OPTIONS, bare)):
        return name
    rest = without_shared_words(heads)
    return _first_in_order(_BARE_DEGREES, list(map(_bare_degree, rest))) or pole_family(rest) or two_subjects(heads)


_NO = re.compile(r"^no(?:,? (?:never|none|not at all))?\Z")


def _first_in_order(families: Families, heads: Sequence[str]) -> str | None:
    """The first family that knows a place of every option and has them in order."""
    return next((name for name, place in families if in_order_if_known([place(h) for h in heads])), None)


def _family_of_degrees(heads: Sequence[str]) -> str | None:
    """The family by words that stand beside others: `a little help`."""
    name = _first_in_order(_PARTS_OF_OPTIONS, heads)
    if name:
        return name
    if in_order_if_known([_extent(h) for h in _with_plain_degree(heads)]):
        return "extent"
    if len(heads) > 2 and in_order_if_known(durations(heads)):
        return "length of time"
    if in_order_if_known(times(heads)) and len(heads) > 1:
        return "numbers of times"
    return pole_family(heads)


def is_middle_of(middle: str, first: str, second: str) -> bool:
    """Whether an option is both, neither or about the same beside two opposites of one object, or beside two that are compared."""
    if not is_between(middle) or is_between(first) or is_between(second):
        return False
    objects = list(objects_of_opposites(first, second))
    if objects:
        return any(have_same_object(*pair) for pair in objects)
    return are_negated(first, second) or may_have_shares(middle, first, second)


def _between_labelled_ends(heads: Sequence[str]) -> bool:
    """`Very bad | 2 | 3 | 4 | Very good`: numbers one apart, of which the ends have words."""
    inner = [number(h) for h in heads[1:-1]]
    if (
        number(heads[0]) is not None
        or len(inner) < 3
        or None in inner
        or not all(re.fullmatch(r"\d+(?:\.0)?", h) for h in heads[1:-1])
    ):
        return False
    steps = {b - a for a, b in pairwise(n for n in inner if n is not None)}
    return steps in ({1.0}, {-1.0}) and not {heads[0], heads[-1]} & {"other", "none", "none of these", "all"}


def _with_plain_degree(heads: Sequence[str]) -> list[str]:
    """`close` beside `very close` and `not close at all` is moderately so."""
    return [
        f"moderately {h}" if " " not in h and any(re.search(rf" {re.escape(h)}(?: at all)?\Z", o) for o in heads) else h
        for h in heads
    ]


def _looked_up(table: tuple[tuple[float, str], ...], tail: str = "", prefix: str = "") -> Callable[[str], float | None]:
    compiled = [(place, re.compile(f"{prefix}(?:{pattern}){tail}")) for place, pattern in table]
    return lambda head: next((place for place, pattern in compiled if pattern.fullmatch(head)), None)


_place_of_extent = _looked_up(
    EXTENT, tail=r"(?: (?!and\b)\w+){0,2}(?: or \w+)?(?: who .*| to come .*)?", prefix=r"(?:i know |i am )?"
)


def _extent(head: str) -> float | None:
    """`very much`, `trust completely`, `do not trust at all`."""
    head = re.sub(r"^(?:i )?(?:do not|don['’]?t|have not|haven['’]?t) \w+ anything\b", "nothing", head)
    negated = re.sub(rf"^(?:i )?(?:do not|don['’]?t) {_VERBS}(?: (?:it|them))?(?= |\Z)", "not", head)
    return _place_of_extent(re.sub(rf"^(?:i )?(?:{_VERBS}|bothered|heard)(?: (?:it|them))? (?=\w)", "", negated))


_ARTICLE = re.compile(
    r"\b(?:an?|the) (?!lot\b|little\b|few\b|bit\b|great|good|fair|moderate|large|small|major|minor|big|year|month|week|day|time)"
)
_NOT_BARE = re.compile(
    r"^(?:there|are|is|be|it|do|does|did|would|have|has|of|to|in|under)\s+|\s+(?:of|an?|the|in|on|for|to|is|are|be)\Z"
)


def _bare_degree(rest: str) -> str:
    """What is left of an option without the words that options share: `not too of a` is `not too`, nothing is the plain degree."""
    rest = re.sub(r"^(?:do|does|did)(?: not|n['’]?t)\b", "not", re.sub(r",? but .*", "", rest))
    rest = _ARTICLE.sub("", f"{rest} ").strip(" .,;")
    while (shorter := _NOT_BARE.sub("", rest)) != rest:
        rest = shorter
    return rest or "moderately"


_place_of_frequency = _looked_up(FREQUENCY)


def _frequency(head: str) -> float | None:
    """`often`, `yes, sometimes`, `weekly or more often`."""
    bare = re.sub(r"^yes,? | or more(?: often)?\Z", "", head)
    places = (find(text) for text in (head, bare) for find in (_place_of_frequency, place_of_rate))
    return next((place for place in places if place is not None), None)


Families = tuple[tuple[str, Callable[[str], float | None]], ...]
_WHOLE_OPTIONS: Families = (
    ("frequency", _frequency),
    ("comparison", comparison),
    ("rating", _looked_up(RATING)),
    ("share of time", _looked_up(SHARE_OF_TIME)),
    ("likeness", _looked_up(LIKENESS)),
    ("comparison with the usual", _looked_up(THAN_USUAL)),
    ("difficulty", _looked_up(DIFFICULTY)),
    ("living", _looked_up(LIVING, prefix=r"(?:i |we |they )?", tail=r"(?: on .*)?")),
    ("class", _looked_up(CLASS, tail=r"(?: class| income)?", prefix=r"(?:the )?")),
    ("priority", _looked_up(PRIORITY)),
    ("relation", _looked_up(RELATION)),
    ("timing", _looked_up(TIMING)),
    ("working time", _looked_up(WORKING, prefix=r"(?:(?:working|employed) )?", tail=r"(?: (?:for pay|work|job))*(?: at all)?")),
    ("schooling", _looked_up(SCHOOLING)),
    ("recency", _looked_up(RECENCY)),
    ("knowledge", _looked_up(HEARD_OF)),
)
_PARTS_OF_OPTIONS: Families = (
    ("numbers", number),
    ("adequacy", _looked_up(SUFFICIENCY)),
    ("severity", _looked_up(SEVERITY, tail=r"(?: (?!and\b)\w+){0,4}", prefix=r"(?:i (?:have )?)?(?:an? )?")),
    ("level", _looked_up(LEVEL, tail=r"(?: \w+)?")),
    ("extent", _extent),
)
_STANDINGS = (_looked_up(EVER), _looked_up(ACTION), _looked_up(KEPT))
_BARE_DEGREES: Families = (
    ("extent", _looked_up(EXTENT)),
    ("frequency", _frequency),
    ("share of time", _looked_up(SHARE_OF_TIME)),
    ("working time", _looked_up(WORKING)),
    ("class", _looked_up(CLASS)),
    ("rating", _looked_up(RATING)),
    ("level", _looked_up(LEVEL)),
    ("severity", _looked_up(SEVERITY)),
)
