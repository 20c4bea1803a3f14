"""Opposites on an answer scale: two poles with degrees between them, and which of two things is more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

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
    (
        "certainty",
        r"definitely|certainly|probably|maybe|perhaps",
        r"(?:definitely|certainly|probably|maybe|perhaps) (?:\w+ )?(?:no|not|won['’]?t)",
    ),
)
_MIDDLE = re.compile(
    r"\b(?:neutral|neither|equal|equally|same|unchanged|average|mixed|(?:maybe|perhaps)(?! (?:will|won|would|should|not|yes|no)\b)"
    r"|no (?:major |real |significant )?(?:change|impact|effect|difference|opinion)|about (?:the )?right|moderate|middle of the road"
    r"|not sure|unsure|undecided|might or might not)\b"
)
_INTENSITY: tuple[tuple[float, str], ...] = (
    (2, r"^too (?:much|many)\b"),
    (1, r"somewhat|slightly|a (?:little|bit)|probably|possibly|maybe|perhaps|not really|rather|tend to|leaning|partly|mildly"),
    (3, r"strongly|completely|totally|entirely|fully|definitely|extremely|profoundly|absolutely|significantly"),
    (3, r"far|much|a lot|a great deal|not at all"),
    (1.5, r"fairly|pretty"),
    (1.8, r"mostly|moderately"),
    (2.5, r"very|quite|noticeably|considerably|highly|generally"),
)
_PLAIN_INTENSITY = 2.0
_LONGEST_HEAD = 6  # words; a longer option is a statement of its own, whatever words it holds

_BALANCED = re.compile(
    r"(?:equally|neither) \w+ (?:and|nor) \w+|(?:\w+ and \w+|they|both) are (?:about )?equal(?:ly balanced)?"
)
_UNBALANCED = (
    re.compile(r"(?:(?P<by>much|far|slightly|somewhat) )?more (?P<first>\w+) than (?P<second>\w+)"),
    re.compile(r"(?P<first>\w+)(?: (?P<by>\w+))? outweighs? (?P<second>\w+)"),
)


def comparison(head: str) -> float | None:
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


def pole_family(heads: Sequence[str]) -> str | None:
    """The family of opposites whose signed intensities put all options in order."""
    for name, positive, negative in _POLES:
        places = [_signed(h, positive, negative) for h in heads]
        known = [p for p in places if p is not None]
        if len(known) == len(places) and min(known) < 0 < max(known) and in_order(known):
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


def in_order(places: Sequence[float]) -> bool:
    steps = [b - a for a, b in pairwise(places)]
    return all(s > 0 for s in steps) or all(s < 0 for s in steps)
