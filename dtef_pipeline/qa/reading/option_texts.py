"""Which options a stretch of a reply names by their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from dtef_pipeline.text.plain import plain

_MARKS = " .,;:!?\n"
_JOINT_OF_TEXTS = re.compile(r",? (?:and|or) ")
_IN_A_NUMBER = "-^/*+.,"


class OptionTexts:
    """The texts of an item's options, compared without regard to case, quotes, emphasis and outer punctuation; signs inside count."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = tuple(options)

    @cached_property
    def _texts(self) -> list[tuple[str, int]]:
        """(plain text, number of the option), the longest first."""
        spelled = [(plain(option).strip(_MARKS), number) for number, option in enumerate(self._options)]
        return sorted(((text, number) for text, number in spelled if text), key=lambda pair: -len(pair[0]))

    def named_in(self, stretch: str) -> set[int]:
        """Numbers of the options whose whole texts stand in the stretch; a place belongs to the longest text there."""
        rest = plain(stretch)
        named: set[int] = set()
        for text, number in self._texts:
            place = _place_of(text, rest)
            if place >= 0:
                named.update(same for other, same in self._texts if other == text)
                rest = rest[:place] + "\0" * len(text) + rest[place + len(text) :]
            elif text in rest:
                named.discard(number)
        return named

    def begun_by(self, stretch: str, *, whole: bool = False) -> set[int]:
        """Numbers of the options with the longest text that the stretch begins with, and of one that `or` joins to it.

        `whole`: only where a sentence or line ends behind the text.
        """
        rest = plain(stretch).lstrip(_MARKS + "(")
        for text, _ in self._texts:
            if (
                rest.startswith(text)
                and _is_end(rest, len(text))
                and (not whole or rest[len(text) :].lstrip(" )")[:1] in ("", *_MARKS))
            ):
                joint = _JOINT_OF_TEXTS.match(rest, len(text))
                return {
                    number
                    for other, number in self._texts
                    if other == text
                    or (joint and rest.startswith(other, joint.end()) and _is_end(rest, joint.end() + len(other)))
                }
        return set()


def _is_end(text: str, end: int) -> bool:
    """Whether no word and no number goes on here."""
    after = text[end : end + 1]
    if not after or not text[end - 1].isalnum():
        return True
    return not (after.isalnum() or after in "%^" or (after in ".," and text[end + 1 : end + 2].isdigit()))


def _place_of(text: str, stretch: str) -> int:
    """Where the text stands as whole words; -1: nowhere. Only the first fifty places are tried."""
    place, tried = stretch.find(text), 0
    while place >= 0 and tried < 50:
        before = stretch[place - 1 : place]
        is_begin = (
            not before or not text[0].isalnum() or not (before.isalnum() or (text[0].isdigit() and before in _IN_A_NUMBER))
        )
        if is_begin and _is_end(stretch, place + len(text)):
            return place
        place, tried = stretch.find(text, place + 1), tried + 1
    return -1
