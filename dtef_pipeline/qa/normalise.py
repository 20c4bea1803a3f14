"""The spelling in which texts are compared: small ASCII letters and digits, without accents, apostrophes and punctuation.

Everything here is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata

_NOT_ASCII_RUN = re.compile(r"[^\x00-\x7f]{1,256}")
"""Short pieces: putting long runs of combining marks in order takes the square of their length."""
_NO_WORD = re.compile(r"(?<![0-9])\.|\.(?![0-9])|-(?![0-9])|[^a-z0-9.%-]+")


def normalise(text: str | None) -> str:
    """The text as it is compared: NFKC, transliterated to ASCII, case folded, apostrophes dropped, punctuation turned into spaces.

    A `.` between digits, a `-` before a digit and `%` stay, so that 3.5 and -5 are still numbers. Spaces are single, and none is at an end.
    A normalised text is normalised already. None, the text of a reply that is not there, is the empty text.
    """
    return without_punctuation(folded(text)) if text else ""


def folded(text: str) -> str:
    """The text in small ASCII letters, with its punctuation: `Łódź – “HavHøst”` is `lodz - "havhost"`."""
    return (text if text.isascii() else _NOT_ASCII_RUN.sub(_in_ascii, text)).lower()


def _in_ascii(found: re.Match[str]) -> str:
    from anyascii import anyascii

    # NFKC makes of an acute accent by itself a space with an accent above, and people write it for an apostrophe.
    return anyascii(unicodedata.normalize("NFKC", found[0].replace("´", "'")))


def without_punctuation(text: str) -> str:
    """A folded text without its apostrophes, and with single spaces for its punctuation."""
    return " ".join(_NO_WORD.sub(" ", text.replace("'", "")).split())
