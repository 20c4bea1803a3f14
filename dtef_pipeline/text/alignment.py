"""Text with one spelling of digits, dashes, brackets and spaces. Every character keeps its position."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping

_LOWER_ASCII = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_WRITTEN_ALIKE = {
    "\u2010": "-",
    "\u2011": "-",
    "\u2012": "-",
    "\u2013": "-",
    "\u2212": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u3010": "[",
    "\u3011": "]",
}


class CharacterTable(dict[int, str]):
    """Translation table for `str.translate`, with the results of a function for the characters that it has not yet, in linear time."""

    def __init__(self, known: Mapping[str, str], convert: Callable[[str], str]) -> None:
        super().__init__({code: chr(code) for code in range(128)} | {ord(char): text for char, text in known.items()})
        self._convert = convert

    def __missing__(self, code: int) -> str:
        char = self._convert(chr(code))
        if len(self) < 10_000:
            self[code] = char
        return char


def _align_character(char: str) -> str:
    if (digit := unicodedata.decimal(char, None)) is not None:
        return str(digit)
    if unicodedata.category(char) == "Zs":
        return " "
    if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>", "<circle>", "<font>")):
        normal = unicodedata.normalize("NFKC", char)
        return normal if len(normal) == 1 and normal.isascii() and not normal.isdigit() else char
    return char


_TABLE_OF_LIKE = CharacterTable(_WRITTEN_ALIKE, _align_character)


def align_text(text: str) -> str:
    """Return the text, unchanged in length, with ASCII digits, hyphens for minus signs and dashes, plain quotes and ASCII for full-width
    forms.
    """
    return text if text.isascii() else text.translate(_TABLE_OF_LIKE)


def align_lower(text: str) -> str:
    """Return `align_text` in lower case: of all letters if that keeps the length, else of ASCII letters only."""
    text = align_text(text)
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_LOWER_ASCII)
