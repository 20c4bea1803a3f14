"""Where a reply states its number: `the answer is`, `Final answer:`, `A:`, and what concludes behind a correction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dtef_pipeline.qa.reading.corrections import corrected_places
from dtef_pipeline.qa.reading.foreign_cues import foreign_cues

_CUE = re.compile(
    r"""(?:\banswer\b|\bfinal\s{1,3}(?:number|result)\b)[^\s.:=!?]{0,25}
        (?:[^\S\n]{1,3}[^\s.:=!?]{1,25}){0,8}?
        (?:\s{1,3}(?:is|are|was|equals|becomes|comes\s+to|(?:would|will|should|must|has\s+to)\s+be)\b|[^\S\n*_]{0,3}[*_]{0,3}[:=])""",
    re.VERBOSE,
)
_BARE_CUE = re.compile(r"\banswer[^\w\n]{0,8}\n?[^\w\n]{0,8}(?=[-$0-9\\])")
_LETTERED_LINE = re.compile(r"^[^\S\n]*[*_>]{0,3}A[*_]{0,3}:", re.MULTILINE)
_ASKED_TO = re.compile(r"\b(?:to|can|must|should|could|will|we|i|you|they|he|she|each|students?)[ *]{1,3}\Z")
_ALONE_BEFORE = re.compile(r"(?:^|\n)[^\w\n]*(?:the\s+)?(?:(?:final|correct)\s+)?\Z")
_CORRECTS = re.compile(
    r"""\b(?:wait\b|actually,|hold\son|scratch\sthat|correction:|let\sme\sre-?(?:check|calculate|consider|do)|i\smade\san?\s(?:mistake|error)
        |that(?:'s|\sis)\s(?:wrong|not\sright|incorrect))""",
    re.VERBOSE,
)
_CONCLUDES = re.compile(
    r"""\b(?:so|thus|therefore|hence)\b,?\s(?:it|this|that|the\s(?:total|result|number|sum))\s(?:is|must\sbe|should\sbe|equals|becomes)\b
        (?=[\s$*]{1,4}[-0-9])""",
    re.VERBOSE,
)
_NUMBER_TO_THE_END = re.compile(
    r"[$€£*_]{0,4}-?[$€£]?[0-9](?:[0-9,]|\.[0-9]){0,20}%?[*_]{0,3}(?:[.!;,。](?![0-9])|\s{0,3}(?:\n|\Z))"
)
_ENDS_IN_VALUE = re.compile(
    r"""[$€£*_]{0,4}-?[$€£]?[0-9](?:[-0-9,+*/×=()$%]|\.[0-9]|\s(?=[-0-9+*/×=($])){0,40}[*_]{0,3}
        (?:\s(?!more|less|fewer|plus|minus|times|of|from|per|and|or|for|short|off|because|since)[^\W\d_]{1,15}){0,3}[*_]{0,3}
        (?:[.!;,。](?![0-9])|\s{0,3}(?:\n|\Z)|\s(?:because|since)\b)""",
    re.VERBOSE,
)


class NumberCue(NamedTuple):
    """Words that open a statement, and what is known of them."""

    start: int
    end: int
    is_heading: bool
    """Whether it may be one: `Answer:`."""
    has_commas: bool = False
    """Whether figures behind it have a comma before their decimals."""


def number_cues(text: str, lower: str) -> Iterator[NumberCue]:
    """The cues of a text, from left to right; `lower` is the text in lower case, as long as it."""
    return _merge_cues(sorted(_cues(text, lower)))


def _merge_cues(cues: Iterable[NumberCue]) -> Iterator[NumberCue]:
    """`Answer: the answer is 5` is one statement: a heading gives way to the cue that follows within it."""
    held: NumberCue | None = None
    for cue in cues:
        if held and not (held.is_heading and cue.start - held.end < 15):
            yield held
        held = cue
    if held:
        yield held


def _cues(text: str, lower: str) -> Iterator[NumberCue]:
    """Every cue of a statement, and everything that corrects one."""
    stated = sorted(_stating_cues(text, lower))
    yield from stated
    if stated:
        yield from _correcting_cues(lower, stated[0].end)


def _stating_cues(text: str, lower: str) -> Iterator[NumberCue]:
    for word in ("answer", "final"):
        passed, place = 0, lower.find(word)
        while place >= 0:
            found = _cue_at(lower, max(0, place - 1), place) if place >= passed else None
            if found:
                yield NumberCue(place, found.end(), word == "answer" and found[0].endswith(":"))
                passed = found.end()
            place = lower.find(word, place + len(word))
    for lettered in _LETTERED_LINE.finditer(text) if "A" in text else ():
        yield NumberCue(lettered.start(), lettered.end(), True)
    yield from (NumberCue(cue.start, cue.end, False, cue.has_commas) for cue in foreign_cues(lower))


def _correcting_cues(lower: str, begins: int) -> Iterator[NumberCue]:
    """`Wait, no, it is 7` behind a statement, and `so it is 7` behind a correction of one."""
    for place, is_named in corrected_places(lower, begins):
        if (_ENDS_IN_VALUE if is_named else _NUMBER_TO_THE_END).match(lower, place):
            yield NumberCue(place, place, False)
    if correction := _CORRECTS.search(lower, begins):
        yield from (NumberCue(one.start(), one.end(), False) for one in _CONCLUDES.finditer(lower, correction.end()))


def _cue_at(lower: str, before: int, place: int) -> re.Match[str] | None:
    found = _CUE.match(lower, place)
    if _ASKED_TO.search(lower, max(0, place - 15), place):
        return None
    if found:
        return found
    return _BARE_CUE.match(lower, place) if _ALONE_BEFORE.search(lower, max(0, place - 30), place) else None
