"""Text in one spelling for finding names: lower case, without accents, invisible or look-alike characters."""

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
    """Return the text in lower case without accents, invisible and look-alike characters, and the original position of each character."""
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
    plain = unicodedata.normalize("NFKD", character.translate(_CAPITAL_LOOKALIKES).casefold()).casefold().translate(_LOOKALIKES)
    return "".join(letter for letter in plain if not _is_mark(letter))


def _is_mark(character: str) -> bool:
    """Whether the character is an accent, a zero-width character or a soft hyphen."""
    return unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc") and character not in "\t\n\r"


def skip_marks(text: str, place: int) -> int:
    """Return the first position from here on that has no mark."""
    while place < len(text) and _is_mark(text[place]):
        place += 1
    return place
