"""The options that a stretch of a reply names by their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from dtef_pipeline.text.plain import normalise_text

_MARKS = " .,;:!?\n"
_JOINT_OF_TEXTS = re.compile(r",? (?:and|or) ")
_IN_A_NUMBER = "-^/*+.,"


class OptionTexts:
    """The texts of an item's options, compared without case, quotes, emphasis and outer punctuation; inner punctuation counts."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = tuple(options)

    @cached_property
    def _texts(self) -> list[tuple[str, int]]:
        """Plain texts and numbers of options, longest first."""
        texts = [(normalise_text(option).strip(_MARKS), number) for number, option in enumerate(self._options)]
        return sorted(((text, number) for text, number in texts if text), key=lambda pair: -len(pair[0]))

    def find_named_options(self, stretch: str) -> set[int]:
        """Return the numbers of the options whose whole texts occur in the stretch; the longest text wins a place."""
        remainder = normalise_text(stretch)
        named: set[int] = set()
        for text, number in self._texts:
            place = _find_whole_words(text, remainder)
            if place >= 0:
                named.update(index for option, index in self._texts if option == text)
                remainder = remainder[:place] + "\0" * len(text) + remainder[place + len(text) :]
            elif text in remainder:
                named.discard(number)
        return named

    def match_start(self, stretch: str, *, is_whole: bool = False) -> set[int]:
        """Return the numbers of the options with the longest text at the start of the stretch, and of an option that `or` joins to it.

        `is_whole`: only if a sentence or line ends after the text.
        """
        tail = normalise_text(stretch).lstrip(_MARKS + "(")
        for text, _ in self._texts:
            if (
                tail.startswith(text)
                and _is_end(tail, len(text))
                and (not is_whole or tail[len(text) :].lstrip(" )")[:1] in ("", *_MARKS))
            ):
                joint = _JOINT_OF_TEXTS.match(tail, len(text))
                return {
                    number
                    for option, number in self._texts
                    if option == text
                    or (joint and tail.startswith(option, joint.end()) and _is_end(tail, joint.end() + len(option)))
                }
        return set()


def _is_end(text: str, end: int) -> bool:
    """Return whether no word or number continues here."""
    after = text[end : end + 1]
    if not after or not text[end - 1].isalnum():
        return True
    return not (after.isalnum() or after in "%^" or (after in ".," and text[end + 1 : end + 2].isdigit()))


def _find_whole_words(text: str, stretch: str) -> int:
    """Find the text as whole words; -1: not found. Only the first fifty places are tried."""
    place, attempts = stretch.find(text), 0
    while place >= 0 and attempts < 50:
        before = stretch[place - 1 : place]
        is_begin = (
            not before or not text[0].isalnum() or not (before.isalnum() or (text[0].isdigit() and before in _IN_A_NUMBER))
        )
        if is_begin and _is_end(stretch, place + len(text)):
            return place
        place, attempts = stretch.find(text, place + 1), attempts + 1
    return -1


LETTER_OPENING = r"(?:[\s*_\"'`$(\[{<]|\\(?:text|textbf|mathrm|mathbf|boxed|rm|bf)?\s?\{|\\[(\[]){0,12}"
"""Characters that may separate a cue and its letter."""
LETTER_CLOSING = r"[)\]}>*_\"'`$]{0,6}"
_ONE_LETTER = re.compile(
    rf"({LETTER_OPENING})([A-J](?!(?![\u3040-\u30ff\u4e00-\u9fff])\w|['-]\w)|[a-j](?=[)\]}}*.,;:!\"'$]|\s*\Z|\s*\n))({LETTER_CLOSING})"
)
_JOINED = re.compile(
    r"\s{0,3}(?:,\s{0,3}(?:and|or)?|and(?:/or)?|or|&|/|\+)\s{0,3}(?:also\s)?(?:(?:the\s)?(?:option|choice|answer|letter)s?\s)?"
)
_PREDICATE_FOLLOWS = re.compile(r"\s{1,3}(?:is|was|isn|has|would|does|cannot|can|could|states?|says)\b")
_LOWER_CASE_WORD_FOLLOWS = re.compile(r"[ \t]+([a-z]+)")
_AFTER_A_LETTER = {
    "because", "since", "as", "and", "or", "nor", "but", "which", "with", "due", "given", "while", "is", "in", "per", "though", "if", "so",
    "where", "when", "that", "rather", "instead", "not", "by", "from", "for", "according", "based", "assuming", "the", "it", "was",
    "will", "would", "can",
}  # fmt: skip
_MAX_LETTERS = 12


class NamedLetters(NamedTuple):
    """The letters that one place names, in capitals, and their start and end including brackets."""

    letters: tuple[str, ...]
    start: int
    end: int
    is_bare: bool
    """Whether no bracket closes the last one."""


def read_letters_at(text: str, place: int) -> NamedLetters | None:
    """Return the letters A-J at a place after optional brackets and emphasis; several if joined; None if none."""
    first = _match_letter_at(text, place)
    if first is None:
        return None
    letters, end = [first[2].upper()], first.end()
    while len(letters) < _MAX_LETTERS and (joint := _JOINED.match(text, end)):
        following = _match_letter_at(text, joint.end())
        if following is None or _PREDICATE_FOLLOWS.match(text, following.end()):
            break
        letters.append(following[2].upper())
        end = following.end()
    return NamedLetters(tuple(dict.fromkeys(letters)), first.start(2), end, not first[3].strip("*_ "))


def _match_letter_at(text: str, place: int) -> re.Match[str] | None:
    match = _ONE_LETTER.match(text, place)
    return None if match is None or is_a_word(text, match) else match


def is_a_word(text: str, match: re.Match[str]) -> bool:
    """Return whether the `A` or `I` of a match is a word: the lower-case word after it cannot follow an option's letter."""
    if match[2] not in "AI" or match[3]:
        return False
    following = _LOWER_CASE_WORD_FOLLOWS.match(text, match.end(2))
    return following is not None and following[1] not in _AFTER_A_LETTER
