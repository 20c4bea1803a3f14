"""Is a question's list of options an ordered scale, and which options stand beside it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list counts as ordinal only when every option on it is recognised and the
options stand in order, rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, get_args

from dtef_pipeline.identity import normalized
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


_DONT_KNOW = re.compile(
    r"(?:(?:i )?(?:don['’]?t|do not|can['’]?t|cannot) (?:know|say|answer|tell|remember|recall|choose|judge)\b.*"
    r"|(?:i['’]?m |i am )?(?:not sure|unsure|uncertain|undecided)\b.*"
    r"|(?:i )?(?:would |['’]d )?(?:prefer|rather) not (?:to )?(?:say|answer|disclose|respond|share)\b.*"
    r"|(?:i['’]?ve |i have )?never (?:used|tried)\b.*"
    r"|(?:i have )?no (?:opinion|answer|response)|(?:it['’]?s )?hard to say"
    r"|(?:this |it |that )?(?:does not|doesn['’]?t) apply(?: to me| to my situation)?|not (?:applicable|relevant)(?: to me)?"
    r"|(?:refuse|decline|choose not|chose not)d?(?: to (?:say|answer))?|(?:too early|impossible|difficult) to (?:say|tell)"
    r"|dk|n/?a|no idea)[.,!]?"
)
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


def scale_of(options: Sequence[str], stated: str | None = None) -> Scale:
    """Ordinal or nominal, with the reason; a scale that the survey states itself is taken as stated."""
    texts = [normalized(o) for o in options]
    dont_know = tuple(bool(_DONT_KNOW.fullmatch(t)) for t in texts)
    kind, reason = _judge([t for t, off in zip(texts, dont_know, strict=True) if not off])
    if kind == "nominal":
        kind, reason, dont_know = _without_those_not_concerned(texts, dont_know) or (kind, reason, dont_know)
    aside = ", ".join(repr(o) for o, off in zip(options, dont_know, strict=True) if off)
    note = f"; set aside: {aside}" if aside else ""
    if stated in ("ordinal", "nominal"):
        kind, reason = ("ordinal" if stated == "ordinal" else "nominal"), "stated by the survey"
    return Scale(kind, reason + note, dont_know, _listed_positions(dont_know) if kind == "ordinal" else None)


def _listed_positions(off: Sequence[bool]) -> tuple[float | None, ...]:
    """1, 2, ... in the order of the list; None for what is off the scale."""
    return tuple(None if aside else float(place) for place, aside in zip(accumulate(not o for o in off), off, strict=True))


def _without_those_not_concerned(
    texts: Sequence[str], dont_know: tuple[bool, ...]
) -> tuple[Kind, str, tuple[bool, ...]] | None:
    """The verdict on a list that is a scale without its first or last option, by which someone is not concerned."""
    left = [i for i, off in enumerate(dont_know) if not off]
    for pattern in (_HAS_NONE, _DOES_NOT):
        ends = {i for i in (left[0], left[-1]) if pattern.fullmatch(texts[i])} if len(left) > 2 else set[int]()
        if not ends:
            continue
        marks = tuple(off or i in ends for i, off in enumerate(dont_know))
        kind, reason = _judge([t for t, off in zip(texts, marks, strict=True) if not off])
        # "I do not drink" beside daily and weekly is never: a place on the scale, and nothing to set aside.
        if kind == "ordinal" and not (pattern is _DOES_NOT and reason.startswith(_TIMES_COUNTED)):
            return kind, reason, marks
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
    head = re.split(r"\s[–—-]\s|\s?[(:]|\be\.g\.| (?:now )?(?:than|as) .*(?:ago|before)$", text, maxsplit=1)[0]
    return head.strip(" .,;!\"'“”")


def _with_plain_degree(heads: Sequence[str]) -> list[str]:
    """`close` beside `very close` and `not close at all` is moderately so."""
    return [
        f"moderately {h}" if " " not in h and any(re.search(rf" {re.escape(h)}(?: at all)?$", o) for o in heads) else h
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
    negated = re.sub(rf"^(?:i )?(?:do not|don['’]?t) {_VERBS}(?: (?:it|them))?(?= |$)", "not", head)
    return _place_of_extent(re.sub(rf"^(?:i )?(?:{_VERBS}|bothered|heard)(?: (?:it|them))? (?=\w)", "", negated))


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
