"""Letters of options at a place of a reply: `(B)`, `**C**`, `\\text{A}`, `A and D`; `A dog` and `I think` name none."""

from __future__ import annotations

import re
from typing import NamedTuple

LETTER_OPENING = r"(?:[\s*_\"'`$(\[{<]|\\(?:text|textbf|mathrm|mathbf|boxed|rm|bf)?\s?\{|\\[(\[]){0,12}"
"""What may stand between a cue and its letter."""
LETTER_CLOSING = r"[)\]}>*_\"'`$]{0,6}"
_ONE_LETTER = re.compile(
    rf"({LETTER_OPENING})([A-J](?!(?![\u3040-\u30ff\u4e00-\u9fff])\w|['-]\w)|[a-j](?=[)\]}}*.,;:!\"'$]|\s*\Z|\s*\n))({LETTER_CLOSING})"
)
_JOINED = re.compile(
    r"\s{0,3}(?:,\s{0,3}(?:and|or)?|and(?:/or)?|or|&|/|\+)\s{0,3}(?:also\s)?(?:(?:the\s)?(?:option|choice|answer|letter)s?\s)?"
)
_SPOKEN_OF = re.compile(r"\s{1,3}(?:is|was|isn|has|would|does|cannot|can|could|states?|says)\b")
_GOES_ON_SMALL = re.compile(r"[ \t]+([a-z]+)")
_AFTER_A_LETTER = {
    "because", "since", "as", "and", "or", "nor", "but", "which", "with", "due", "given", "while", "is", "in", "per", "though", "if", "so",
    "where", "when", "that", "rather", "instead", "not", "by", "from", "for", "according", "based", "assuming", "the", "it", "was",
    "will", "would", "can",
}  # fmt: skip
_MOST_LETTERS = 12


class NamedLetters(NamedTuple):
    """The letters that one place names, in capitals, and where they begin and end with their brackets."""

    letters: tuple[str, ...]
    start: int
    end: int
    is_bare: bool
    """Whether no bracket closes the last one."""


def letters_at(text: str, place: int) -> NamedLetters | None:
    """The letters A-J at a place, brackets and emphasis before them passed over; several where they are joined; None: none."""
    first = _letter_at(text, place)
    if first is None:
        return None
    letters, end = [first[2].upper()], first.end()
    while len(letters) < _MOST_LETTERS and (joint := _JOINED.match(text, end)):
        following = _letter_at(text, joint.end())
        if following is None or _SPOKEN_OF.match(text, following.end()):
            break
        letters.append(following[2].upper())
        end = following.end()
    return NamedLetters(tuple(dict.fromkeys(letters)), first.start(2), end, not first[3].strip("*_ "))


def _letter_at(text: str, place: int) -> re.Match[str] | None:
    found = _ONE_LETTER.match(text, place)
    return None if found is None or is_a_word(text, found) else found


def is_a_word(text: str, found: re.Match[str]) -> bool:
    """Whether the `A` or `I` of a match is no letter of an option: a word in small letters follows it that none is followed by."""
    if found[2] not in "AI" or found[3]:
        return False
    following = _GOES_ON_SMALL.match(text, found.end(2))
    return following is not None and following[1] not in _AFTER_A_LETTER
