"""Is a question's list of options an ordered scale, and which options stand beside it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list counts as ordinal only when every option on it is recognised and the
options stand in order, rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from dtef_pipeline.identity import normalized

Kind = Literal["ordinal", "nominal"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Scale:
    """The verdict on one list of options; `dont_know` marks those set aside before judging the rest."""

    kind: Kind
    reason: str
    dont_know: tuple[bool, ...]


_DONT_KNOW = re.compile(
    r"(?:(?:i )?(?:don['’]?t|do not|can['’]?t|cannot) (?:know|say|answer|tell|remember)\b.*"
    r"|(?:i['’]?m |i am )?(?:not sure|unsure|uncertain|undecided)\b.*"
    r"|(?:i )?(?:would |['’]d )?(?:prefer|rather) not (?:to )?(?:say|answer|disclose|respond|share)\b.*"
    r"|(?:i['’]?ve |i have )?never (?:used|tried)\b.*"
    r"|(?:i have )?no (?:opinion|answer|response)|(?:it['’]?s )?hard to say"
    r"|dk|n/?a|not applicable|refused|no idea)[.,!]?"
)

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
    ("support", r"support", r"oppose|against"),
    ("favour", r"favou?r(?:able|ably)?", r"unfavou?rabl[ey]|disfavou?r"),
    ("quality", r"good|well", r"bad|badly|poor|poorly"),
    ("amount", r"more|increased?|higher|rise", r"less|fewer|decreased?|lower|fall"),
    ("comfort", r"comfortable", r"uncomfortable"),
    ("confidence", r"confident", r"unconfident"),
    ("safety", r"safer?", r"unsafe|dangerous"),
    ("outlook", r"optimistic|hopeful", r"pessimistic|hopeless"),
    ("ease", r"easy|easier", r"difficult|hard|harder"),
    ("happiness", r"happy", r"unhappy"),
    ("fairness", r"fair", r"unfair"),
    ("adequacy", r"too (?:much|many|fast|high|strict)", r"too (?:little|few|slow|low|lax)"),
    ("yes and no", r"yes", r"no"),
)
_MIDDLE = re.compile(
    r"\b(?:neutral|neither|equal|equally|same|unchanged|average|mixed|maybe|perhaps|no (?:major |real |significant )?(?:change|"
    r"impact|effect|difference|opinion)|about right|not sure|unsure|undecided)\b"
)
_INTENSITY: tuple[tuple[float, str], ...] = (
    (1, r"somewhat|slightly|a (?:little|bit)|probably|possibly|not really|rather|tend to|leaning|partly|mildly"),
    (3, r"strongly|completely|totally|entirely|fully|definitely|extremely|profoundly|absolutely|significantly"),
    (3, r"far|much|a lot|a great deal|not at all"),
    (2.5, r"very|mostly|quite|noticeably|moderately|considerably|highly|generally"),
)
_PLAIN_INTENSITY = 2.0
_LONGEST_HEAD = 6  # words; a longer option is a statement of its own, whatever words it holds

_FREQUENCY: tuple[tuple[float, str], ...] = (
    (0, r"never|not at all"),
    (1, r"hardly ever|almost never|very rarely|less than (?:once a year|yearly|annually)"),
    (1.5, r"less often"),
    (2, r"rarely|seldom|annually|yearly|(?:once|a few times|several times) (?:a|per) year|every year"),
    (3, r"monthly|less than (?:weekly|once a week)|(?:about )?once (?:a|per) month|every month"),
    (3.5, r"(?:a few|several|\d(?:-\d)?) times (?:a|per) month"),
    (4, r"sometimes|occasionally|now and then|weekly|(?:about )?once (?:a|per) week|every week"),
    (5, r"(?:a few|several|\d(?:-\d)?) times (?:a|per) week|about half (?:of )?the time"),
    (6, r"often|frequently|regularly|daily|(?:about )?once (?:a|per) day|every day|usually|most of the time"),
    (
        7,
        r"very often|(?:a few|several|many|\d(?:-\d)?|multiple) times (?:a|per) day|almost always|more than once (?:a|per) day",
    ),
    (8, r"always|often ?/ ?always|all (?:of )?the time|constantly|hourly|almost constantly"),
)
_RATING: tuple[tuple[float, str], ...] = (
    (0, r"very (?:poor|bad)|terrible|awful"),
    (1, r"poor|bad"),
    (2, r"fair|average|ok(?:ay)?|acceptable|neutral|neither good nor (?:bad|poor)"),
    (3, r"good"),
    (4, r"very good"),
    (5, r"excellent|outstanding"),
)
_EXTENT: tuple[tuple[float, str], ...] = (  # the first match counts: `not very` before `not`
    (1, r"not (?:very|too|so|particularly)(?: much)?|not much|(?:maybe )?a little(?: bit)?|a bit|slightly|minimally|hardly"),
    (1, r"very little|a few|one|someone|small|minor|low|weak"),
    (0, r"no|none|nothing|not|not at all|no one|nobody|never|i know (?:no one|nobody)"),
    (1.5, r"neutral|not really"),
    (2, r"somewhat|some|to some extent|maybe|partly|partially|in part|several|fairly"),
    (3, r"moderately|moderate|medium|a moderate amount|quite a bit|quite|mostly|a lot|many|much|about half"),
    (4, r"large|major|big|high|strong|very|very much|a great deal|very well|most|to a (?:great|large) extent|considerably|yes"),
    (5, r"extremely|completely|totally|fully|entirely|all|everyone|always"),
)


def scale_of(options: Sequence[str], stated: str | None = None) -> Scale:
    """Ordinal or nominal, with the reason; a scale that the survey states itself is taken as stated."""
    texts = [normalized(o) for o in options]
    dont_know = tuple(bool(_DONT_KNOW.fullmatch(t)) for t in texts)
    aside = ", ".join(repr(o) for o, off in zip(options, dont_know, strict=True) if off)
    note = f"; set aside: {aside}" if aside else ""
    kind, reason = _judge([t for t, off in zip(texts, dont_know, strict=True) if not off])
    if stated in ("ordinal", "nominal"):
        kind, reason = ("ordinal" if stated == "ordinal" else "nominal"), "stated by the survey"
    return Scale(kind, reason + note, dont_know)


def _judge(texts: list[str]) -> tuple[Kind, str]:
    if len(texts) < 2:
        return "nominal", "fewer than two options on a scale"
    heads = [_head(t) for t in texts]
    if set(heads) <= {"yes", "no"}:
        return "nominal", "yes or no: nothing between"
    for name, place in _FAMILIES:
        places = [place(h) for h in heads]
        known = [p for p in places if p is not None]
        if len(known) == len(places) and _in_order(known):
            return "ordinal", f"{name}, in order"
    poles = _pole_family(heads)
    if poles:
        return "ordinal", f"{poles}, in order"
    return "nominal", "no known scale in order"


def _head(text: str) -> str:
    """The part of an option that carries its place: before a dash, a colon or a bracket."""
    head = re.split(r"\s[–—-]\s|\s?[(:]|\be\.g\.", text, maxsplit=1)[0]
    return head.strip(" .,;!\"'“”")


def _in_order(places: Sequence[float]) -> bool:
    steps = [b - a for a, b in pairwise(places)]
    return all(s > 0 for s in steps) or all(s < 0 for s in steps)


def _looked_up(table: tuple[tuple[float, str], ...], tail: str = "", prefix: str = "") -> Callable[[str], float | None]:
    compiled = [(place, re.compile(f"{prefix}(?:{pattern}){tail}")) for place, pattern in table]
    return lambda head: next((place for place, pattern in compiled if pattern.fullmatch(head)), None)


def _number(head: str) -> float | None:
    """The place of `3`, `18-25`, `$1,000 to $2,000`, `less than 5`, `more than 7`, `65+`, `2 hours`."""
    bound = r"(less than|under|fewer than|up to|<|more than|over|at least|>)?"
    number = r"[$€£]?(\d+(?:[.,]\d+)*)%?"
    rest = r"(\+| or more| or (?:over|older)| and (?:over|older|above))?"
    match = re.fullmatch(rf"{bound}\s*{number}(?:\s*(?:-|–|to)\s*{number})?{rest}(?:\s*[a-z]+)?", head)
    if match is None:
        return None
    edge = {"less than": -0.5, "under": -0.5, "fewer than": -0.5, "up to": -0.5, "<": -0.5, None: 0.0}.get(match[1], 0.5)
    return float(match[2].replace(",", "")) + (0.5 if match[4] else edge)


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


_FAMILIES: tuple[tuple[str, Callable[[str], float | None]], ...] = (
    ("numbers", _number),
    ("frequency", _looked_up(_FREQUENCY, prefix=r"(?:yes,? )?")),
    ("comparison", _comparison),
    ("rating", _looked_up(_RATING)),
    ("extent", _looked_up(_EXTENT, tail=r"(?: (?!and\b)\w+){0,2}(?: who .*)?", prefix=r"(?:i know )?")),
)
