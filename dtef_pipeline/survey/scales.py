"""Is a question's list of options an ordered scale, and which options stand beside it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list counts as ordinal only when every option on it is recognised and the
options stand in order, rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

from dtef_pipeline.identity import normalized
from dtef_pipeline.survey.non_answers import Role, is_non_answer, may_be_middle, word_of_degree
from dtef_pipeline.survey.opposites import comparison, in_order, pole_family
from dtef_pipeline.survey.scale_words import (
    DIFFICULTY,
    EXTENT,
    FREQUENCY,
    LEVEL,
    LIKENESS,
    LIMITATION,
    LIVING,
    RATING,
    RECENCY,
    SEVERITY,
    SHARE_OF_TIME,
    THAN_USUAL,
)

Kind = Literal["ordinal", "nominal"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Scale:
    """The verdict on one list of options; `dont_know` marks those set aside before judging the rest.

    `positions` are places on the scale, one per option and None for those set aside; None: nominal. Only their order counts.
    """

    kind: Kind
    reason: str
    dont_know: tuple[bool, ...]
    positions: tuple[float | None, ...] | None


_HAS_NONE = re.compile(
    r"i (?:have no|do not have|don['’]?t have|am not (?:an?|in|at)|['’]?m not (?:an?|in|at))\b.*"
    r"|(?:not|no longer) (?:employed|working|married|in)\b.*|(?:no|not had any) (?:contact|experience)\b.*"
)
_DOES_NOT = re.compile(
    r"i (?:have never|have not|haven['’]?t|do not|don['’]?t|never|did not|didn['’]?t)\b.*"
    r"|(?:never|not) (?:used|tried|had|been|needed|visited|seen|met)\b.*"
)
"""`I have no family doctor`, `I did not go`: set aside where it stands at an end of a list that is a scale without it."""

_VERBS = r"(?:trust|like|care|worry|support|follow|believe|agree|rely|depend|enjoy|help|allow)s?"


class _Verdict(NamedTuple):
    """Kind, reason, and the options (k,) that are off the scale."""

    kind: Kind
    reason: str
    off: tuple[bool, ...]


def scale_of(
    options: Sequence[str],
    stated: str | None = None,
    *,
    roles: Sequence[Role | None] = (),
    positions: Sequence[float | None] = (),
) -> Scale:
    """Ordinal or nominal, with the reason; what the survey states itself is taken as stated.

    `roles` and `positions` are one per option, None where the survey states none. Where it states a position of any option, the options
    without one are off the scale.
    """
    texts, of_roles = [normalized(o) for o in options], tuple(roles) or (None,) * len(options)
    if any(place is not None for place in positions):
        kind, reason, off = _of_positions(positions)
        places = tuple(positions)
    else:
        kind, reason, off = _verdict(texts, of_roles, stated == "ordinal")
        places = _listed_positions(off)
    aside = ", ".join(
        f"{o!r} ({role})" if role else repr(o) for o, role, is_off in zip(options, of_roles, off, strict=True) if is_off
    )
    note = f"; set aside: {aside}" if aside else ""
    if stated in ("ordinal", "nominal"):
        kind, reason = ("ordinal" if stated == "ordinal" else "nominal"), "stated by the survey"
    return Scale(kind, reason + note, off, places if kind == "ordinal" else None)


def _of_positions(positions: Sequence[float | None]) -> _Verdict:
    """The verdict on a list whose positions the survey states."""
    off = tuple(place is None for place in positions)
    if len({place for place in positions if place is not None}) < 2:
        return _Verdict("nominal", "positions stated by the survey, all of them the same", off)
    return _Verdict("ordinal", "positions stated by the survey", off)


def _listed_positions(off: Sequence[bool]) -> tuple[float | None, ...]:
    """1, 2, ... in the order of the list; None for what is off the scale."""
    return tuple(None if aside else float(place) for place, aside in zip(accumulate(not o for o in off), off, strict=True))


def _verdict(given: Sequence[str], roles: Sequence[Role | None], is_ordinal: bool) -> _Verdict:
    """The verdict on the options; `is_ordinal` where the survey says that they are a scale."""
    off = tuple(role != "substantive" if role else is_non_answer(t) for t, role in zip(given, roles, strict=True))
    texts = [
        "" if is_off and role else t for t, role, is_off in zip(given, roles, off, strict=True)
    ]  # no words bring them back
    keep = {place for place, role in enumerate(roles) if role}
    degrees = _with_degrees(texts, off)
    others = [marks for marks in (degrees, _with_middle(texts, off)) if marks != off]
    for marks in (*others, off):
        answers = [_NEUTRAL if was and may_be_middle(t) else t for t, was, o in zip(texts, off, marks, strict=True) if not o]
        kind, reason = _judge(answers)
        if kind == "ordinal" or (is_ordinal and marks == degrees != off):
            return _Verdict(kind, reason, marks)
    return _without_those_not_concerned(texts, off, keep) or _Verdict(kind, reason, off)


_NEUTRAL = "neutral"


def _with_degrees(texts: Sequence[str], off: tuple[bool, ...]) -> tuple[bool, ...]:
    """`off` without non-answers that name what the other options are degrees of: `not sure` below `very sure`."""

    def is_degree(place: int) -> bool:
        word = word_of_degree(texts[place])
        return bool(word and any(word.search(t) for t, is_off in zip(texts, off, strict=True) if not is_off))

    return tuple(is_off and not is_degree(place) for place, is_off in enumerate(off))


def _with_middle(texts: Sequence[str], off: tuple[bool, ...]) -> tuple[bool, ...]:
    """`off` without the option that says not sure and stands in the middle of the answers: between `maybe won't` and `maybe will`."""
    answers = [place for place, is_off in enumerate(off) if not is_off]
    half = len(answers) // 2
    if len(answers) < 2 or len(answers) % 2 or {_head(texts[place]) for place in answers} <= {"yes", "no"}:
        return off
    between = [p for p in range(answers[half - 1] + 1, answers[half]) if may_be_middle(texts[p])]
    return tuple(is_off and [place] != between for place, is_off in enumerate(off))


def _without_those_not_concerned(texts: Sequence[str], off: tuple[bool, ...], keep: Set[int]) -> _Verdict | None:
    """The verdict on a list that is a scale without its first or last option, by which someone is not concerned; not those to `keep`."""
    left = [i for i, is_off in enumerate(off) if not is_off]
    for pattern in (_HAS_NONE, _DOES_NOT):
        ends = (
            {i for i in (left[0], left[-1]) if i not in keep and pattern.fullmatch(texts[i])} if len(left) > 2 else set[int]()
        )
        if not ends:
            continue
        marks = tuple(is_off or i in ends for i, is_off in enumerate(off))
        kind, reason = _judge([t for t, is_off in zip(texts, marks, strict=True) if not is_off])
        # "I do not drink" beside daily and weekly is never: a place on the scale, and nothing to set aside.
        if kind == "ordinal" and not (pattern is _DOES_NOT and reason.startswith(_TIMES_COUNTED)):
            return _Verdict(kind, reason, marks)
    return None


def _judge(texts: list[str]) -> tuple[Kind, str]:
    if len(texts) < 2:
        return "nominal", "fewer than two options on a scale"
    heads = [_head(t) for t in texts]
    if len(set(heads)) < len(heads):
        heads = [_head(re.sub(r"^(?:yes|no)\s[–—-]\s", "", t)) for t in texts]  # `Yes - some difficulty`
    if set(heads) <= {"yes", "no"}:
        return "nominal", "yes or no: nothing between"
    for name, place in _FAMILIES_OF_WORDS:
        places = [place(h) for h in heads]
        known = [p for p in places if p is not None]
        if len(known) == len(places) and in_order(known):
            return "ordinal", f"{name}, in order"
    degrees = [_extent(h) for h in _with_plain_degree(heads)]
    if all(d is not None for d in degrees) and in_order([d for d in degrees if d is not None]):
        return "ordinal", "extent, in order"
    poles = pole_family(heads)
    if poles:
        return "ordinal", f"{poles}, in order"
    return "nominal", "no known scale in order"


def _head(text: str) -> str:
    """The part of an option that carries its place: before a dash, a colon, a bracket or `than one year ago`."""
    head = re.split(r"\s[–—-]\s|\s?[(:]|\be\.g\.| (?:now )?(?:than|as) .*(?:ago|before)\Z", text, maxsplit=1)[0]
    return head.strip(" .,;!\"'“”")


def _with_plain_degree(heads: Sequence[str]) -> list[str]:
    """`close` beside `very close` and `not close at all` is moderately so."""
    return [
        f"moderately {h}" if " " not in h and any(re.search(rf" {re.escape(h)}(?: at all)?\Z", o) for o in heads) else h
        for h in heads
    ]


def _looked_up(table: tuple[tuple[float, str], ...], tail: str = "", prefix: str = "") -> Callable[[str], float | None]:
    compiled = [(place, re.compile(f"{prefix}(?:{pattern}){tail}")) for place, pattern in table]
    return lambda head: next((place for place, pattern in compiled if pattern.fullmatch(head)), None)


def _number(head: str) -> float | None:
    """The place of `3`, `none`, `three or more`, `18-25`, `$1,000 to $2,000`, `less than 5`, `more than 7`, `65+`, `2 hours`."""
    bound = r"(less than|under|fewer than|up to|<|more than|over|at least|>)?"
    number = r"[$€£]?(\d+(?:[.,]\d+)*)%?"
    head = re.sub(r"^\w+", lambda word: _NUMERALS.get(word[0], word[0]), head)
    rest = r"(\+| or more| or (?:over|older)| and (?:over|older|above))?"
    match = re.fullmatch(rf"{bound}\s*{number}(?:\s*(?:-|–|to|or)\s*{number})?{rest}(?:\s*[a-z]+)?", head)
    if match is None:
        return None
    edge = {"less than": -0.5, "under": -0.5, "fewer than": -0.5, "up to": -0.5, "<": -0.5, None: 0.0}.get(match[1], 0.5)
    return float(match[2].replace(",", "")) + (0.5 if match[4] else edge)


_NUMERALS = {word: str(number) for number, word in enumerate(("none", "one", "two", "three", "four", "five", "six"))}

_place_of_extent = _looked_up(
    EXTENT, tail=r"(?: (?!and\b)\w+){0,2}(?: or \w+)?(?: who .*| to come .*)?", prefix=r"(?:i know |i am )?"
)


def _extent(head: str) -> float | None:
    """`very much`, `trust completely`, `do not trust at all`."""
    head = re.sub(r"^(?:i )?(?:do not|don['’]?t|have not|haven['’]?t) \w+ anything\b", "nothing", head)
    negated = re.sub(rf"^(?:i )?(?:do not|don['’]?t) {_VERBS}(?: (?:it|them))?(?= |\Z)", "not", head)
    return _place_of_extent(re.sub(rf"^(?:i )?(?:{_VERBS}|know|bothered|heard)(?: (?:it|them))? (?=\w)", "", negated))


_TIMES_COUNTED = ("numbers", "frequency", "share of time")
_FAMILIES_OF_WORDS: tuple[tuple[str, Callable[[str], float | None]], ...] = (
    ("numbers", _number),
    ("frequency", _looked_up(FREQUENCY, prefix=r"(?:yes,? )?")),
    ("comparison", comparison),
    ("rating", _looked_up(RATING)),
    ("share of time", _looked_up(SHARE_OF_TIME)),
    ("severity", _looked_up(SEVERITY, tail=r"(?: (?!and\b)\w+){0,4}", prefix=r"(?:i (?:have )?)?")),
    ("limitation", _looked_up(LIMITATION)),
    ("level", _looked_up(LEVEL, tail=r"(?: \w+)?")),
    ("likeness", _looked_up(LIKENESS)),
    ("comparison with the usual", _looked_up(THAN_USUAL)),
    ("difficulty", _looked_up(DIFFICULTY)),
    ("living", _looked_up(LIVING, tail=r"(?: on .*)?")),
    ("recency", _looked_up(RECENCY)),
    ("extent", _extent),
)
