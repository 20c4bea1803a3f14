"""Is a question's list of options an ordered scale, and which options stand beside it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list counts as ordinal only when every option on it is recognised and the
options stand in order, rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, get_args

from dtef_pipeline.identity import normalized
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

# (pattern of the pole that counts as +, pattern of the opposite pole); the opposite is looked for first.
_POLES: tuple[tuple[str, str, str], ...] = (
    ("agreement", r"agree(?:ment)?", r"disagree(?:ment)?"),
    ("trust", r"trust(?:worthy)?", r"distrust|mistrust|untrustworthy"),
    ("likelihood", r"likely", r"unlikely"),
    ("acceptability", r"acceptable", r"unacceptable"),
    ("change", r"better|improved?", r"worse|worsened?"),
    ("importance", r"important", r"unimportant"),
    ("satisfaction", r"satisfied", r"dissatisfied|unsatisfied"),
    ("valence", r"positive(?:ly)?", r"negative(?:ly)?"),
    ("appeal", r"appealing", r"unappealing"),
    ("availability", r"available", r"unavailable"),
    ("benefit", r"beneficial|helpful", r"harmful|unhelpful"),
    ("interest", r"interested", r"disinterested|uninterested"),
    ("belief", r"believe", r"skeptical|sceptical|disbelieve"),
    ("support", r"support", r"oppose[ds]?|against"),
    ("favour", r"(?:in )?favou?r(?:able|ably)?", r"unfavou?rabl[ey]|disfavou?r|oppose[ds]?|against"),
    ("approval", r"approve", r"disapprove"),
    ("truth", r"true", r"false|untrue"),
    ("accuracy", r"accurate|correct|right", r"inaccurate|incorrect|wrong"),
    ("willingness", r"willing", r"unwilling"),
    ("tendency to trust", r"tend to trust", r"tend not to trust"),
    ("liking", r"like", r"dislike"),
    ("quality", r"good|well", r"bad|badly|poor|poorly"),
    ("amount", r"more|increased?|higher|rise", r"less|fewer|decreased?|lower|fall"),
    ("comfort", r"comfortable", r"uncomfortable"),
    ("confidence", r"confident", r"unconfident"),
    ("safety", r"safer?", r"unsafe|dangerous"),
    ("outlook", r"optimistic|hopeful", r"pessimistic|hopeless"),
    ("ease", r"easy|easier", r"difficult|hard|harder"),
    ("happiness", r"happy", r"unhappy"),
    ("fairness", r"fair", r"unfair"),
    (
        "adequacy",
        r"too (?:much|many|fast|high|strict|harsh(?:ly)?|long)",
        r"too (?:little|few|slow|low|lax|short)|not (?:\w+ )?enough",
    ),
    ("spread", r"widespread|common", r"rare|uncommon"),
    ("ideology", r"conservative", r"liberal"),
    ("yes and no", r"yes", r"no"),
    ("certainty", r"definitely|certainly|probably", r"(?:definitely|certainly|probably) (?:\w+ )?(?:no|not|won['’]?t)"),
)
_MIDDLE = re.compile(
    r"\b(?:neutral|neither|equal|equally|same|unchanged|average|mixed|maybe|perhaps|no (?:major |real |significant )?(?:change|"
    r"impact|effect|difference|opinion)|about (?:the )?right|moderate|middle of the road|not sure|unsure|undecided|might or might not)\b"
)
_INTENSITY: tuple[tuple[float, str], ...] = (
    (2, r"^too (?:much|many)\b"),
    (1, r"somewhat|slightly|a (?:little|bit)|probably|possibly|not really|rather|tend to|leaning|partly|mildly"),
    (3, r"strongly|completely|totally|entirely|fully|definitely|extremely|profoundly|absolutely|significantly"),
    (3, r"far|much|a lot|a great deal|not at all"),
    (1.5, r"fairly|pretty"),
    (1.8, r"mostly|moderately"),
    (2.5, r"very|quite|noticeably|considerably|highly|generally"),
)
_PLAIN_INTENSITY = 2.0
_LONGEST_HEAD = 6  # words; a longer option is a statement of its own, whatever words it holds

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
        if len(known) == len(places) and _in_order(known):
            return "ordinal", f"{name}, in order"
    degrees = [_extent(h) for h in _with_plain_degree(heads)]
    if all(d is not None for d in degrees) and _in_order([d for d in degrees if d is not None]):
        return "ordinal", "extent, in order"
    poles = _pole_family(heads)
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


def _in_order(places: Sequence[float]) -> bool:
    steps = [b - a for a, b in pairwise(places)]
    return all(s > 0 for s in steps) or all(s < 0 for s in steps)


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

_BALANCED = re.compile(
    r"(?:equally|neither) \w+ (?:and|nor) \w+|(?:\w+ and \w+|they|both) are (?:about )?equal(?:ly balanced)?"
)
_UNBALANCED = (
    re.compile(r"(?:(?P<by>much|far|slightly|somewhat) )?more (?P<first>\w+) than (?P<second>\w+)"),
    re.compile(r"(?P<first>\w+)(?: (?P<by>\w+))? outweighs? (?P<second>\w+)"),
)


def _comparison(head: str) -> float | None:
    """`more excited than concerned`, `risks far outweigh benefits`, `risks and benefits are equal`.

    The side that comes first in the alphabet counts as +: the sign only has to be the same for all options of a list.
    """
    if _BALANCED.fullmatch(head):
        return 0.0
    match = next((m for p in _UNBALANCED if (m := p.fullmatch(head))), None)
    if match is None:
        return None
    return _intensity(match["by"] or "") * (1 if match["first"] < match["second"] else -1)


def _intensity(text: str) -> float:
    return next((level for level, words in _INTENSITY if re.search(rf"\b(?:{words})\b", text)), _PLAIN_INTENSITY)


def _pole_family(heads: Sequence[str]) -> str | None:
    """The family of opposites whose signed intensities put all options in order."""
    for name, positive, negative in _POLES:
        places = [_signed(h, positive, negative) for h in heads]
        known = [p for p in places if p is not None]
        if len(known) == len(places) and min(known) < 0 < max(known) and _in_order(known):
            return name
    return None


def _signed(head: str, positive: str, negative: str) -> float | None:
    if len(head.split()) > _LONGEST_HEAD:
        return None
    if _MIDDLE.search(head):
        return 0.0
    if re.search(rf"\b(?:{negative})\b", head):
        return -_intensity(head)
    return _intensity(head) if re.search(rf"\b(?:{positive})\b", head) else None


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
    ("comparison", _comparison),
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
