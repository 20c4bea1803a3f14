"""Texts in one spelling, to look for names in: lower case, without marks, invisible and look-alike characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_LOOKALIKES = str.maketrans("аеіјкорсухѕһԁɡαεικνορτυχ‐‒–—−", "aeijkopcyxshdgaeikvoptux-----")
"""Letters of other alphabets, in lower case, that look like Latin ones; and dashes."""
_CAPITAL_LOOKALIKES = str.maketrans(
    "АВЕІЈКМНОРСТУХЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abeijkmhopctyxsabezhikmnoptyxabcdefghijklmnoprstuvwyz"
)
"""Such letters that look like Latin capitals, small ones among them."""


def fold_text(text: str) -> tuple[str, Sequence[int]]:
    """The text in lower case without marks, invisible and look-alike characters, and the place of each of its characters in the text."""
    if text.isascii():
        return text.lower(), range(len(text))
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in _fold_character(character):
            letters.append(letter)
            places.append(place)
    return "".join(letters), places


@lru_cache(maxsize=20_000)
def _fold_character(character: str) -> str:
    apart = unicodedata.normalize("NFKD", character.translate(_CAPITAL_LOOKALIKES).casefold()).casefold().translate(_LOOKALIKES)
    return "".join(letter for letter in apart if not _is_mark(letter))


def _is_mark(character: str) -> bool:
    """Whether it stands over or between letters without being one: accents, zero-width characters, soft hyphens."""
    return unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc") and character not in "\t\n\r"


def skip_marks(text: str, place: int) -> int:
    """The first place from this one on at which no mark stands."""
    while place < len(text) and _is_mark(text[place]):
        place += 1
    return place
