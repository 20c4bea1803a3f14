"""A name as a pattern that finds it in a folded text, in the forms in which people write it: GPT-4, gpt_4, GPT 4 and GPT4 are one name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.text.folded import folded

JOINT = r"[\s_-]{1,8}"
"""What may stand between the parts of a name; more of it than this is no name any more."""
_NO_JOINT = r"[\s_-]{0,8}"
_DECIMAL_JOINT = r"[\s_.-]{1,8}"
_FURTHER_DECIMALS = r"(?:\.\d{1,6}){0,3}"
"""What goes with a name that ends in a number: GPT-4.1 is hidden whole where GPT-4 is."""
_PIECES = re.compile(r"[^\W\d_]+|\d+|[\s_-]+|.", re.DOTALL)
_LETTERS_BEFORE_DIGITS = 3
"""Letters from which on a number may stand apart that is written at once: gpt4, but not x4, which is what formulas are made of."""
_TIED_VERSION_OF_FAMILY = r"[_-]?v?\d{1,6}(?:\.\d{1,6}){0,3}[a-z]?"


class Spelling(NamedTuple):
    """A name as a pattern."""

    core: str
    """Its longest part, folded: a text without it does not hold the name."""
    pattern: str
    length: int
    """Letters and digits."""
    last: str
    """Its last character, folded."""


def spelling(name: str) -> Spelling | None:
    """The pattern of a name as whole words; None of one that cannot be told from text: fewer than two letters or digits, or digits alone."""
    pieces = _PIECES.findall(folded(name)[0].strip())
    while pieces and _is_joint(pieces[0]):
        del pieces[0]
    while pieces and _is_joint(pieces[-1]):
        del pieces[-1]
    letters = "".join(piece for piece in pieces if piece.isalnum())
    if letters.isdigit() or len(letters) < (2 if letters.isascii() else 1):
        return None
    found = [re.escape(pieces[0])]
    for place, piece in enumerate(pieces[1:], 1):
        if not _is_joint(piece):
            found.append(_between(pieces, place) + (_DECIMAL_JOINT if _is_point(pieces, place) else re.escape(piece)))
    further = _FURTHER_DECIMALS if pieces[-1].isdigit() else ""
    pattern = f"{_before(pieces[0][0])}{''.join(found)}{further}{_after(pieces[-1][-1])}"
    return Spelling(max(pieces, key=len), pattern, len(letters), pieces[-1][-1])


def exact_spelling(name: str) -> Spelling | None:
    """The pattern of the very name of a model, however short, as a whole word; None of one without a letter.

    A hyphen, an underscore, white space or nothing may stand where the name has one of them or where a letter meets a digit: o3, O 3, o-3.
    """
    pieces = [piece for piece in _PIECES.findall(folded(name)[0]) if not _is_joint(piece)]
    letters = "".join(piece for piece in pieces if piece.isalnum())
    if not letters or letters.isdigit():
        return None
    found = [re.escape(pieces[0])]
    for before, piece in pairwise(pieces):
        joint = _NO_JOINT if before.isalnum() and piece.isalnum() else ""
        found.append(joint + (_DECIMAL_JOINT if piece == "." else re.escape(piece)))
    # The m of I'm is no word.
    apart = ("(?<!['’])", "(?!['’](?!s(?![a-z])))") if len(letters) == 1 else ("", "")
    pattern = f"{apart[0]}{_before(pieces[0][0])}{''.join(found)}{_after(pieces[-1][-1])}{apart[1]}"
    return Spelling(max(pieces, key=len), pattern, len(letters), pieces[-1][-1])


def family_spelling(name: str, versions: Iterable[str]) -> Spelling | None:
    """The pattern of what a maker calls all its models, with a version tied to it: GPT, GPT3, Llama-2.

    `versions`: those of names that are hidden, which count with a space before them too.
    A number that only begins with one of them (GPT-40, of GPT-4) is another word, and stays.
    """
    found = spelling(name)
    if found is None:
        return None
    end = found.last
    if not (end.isascii() and end.isalpha()):
        return found
    known = "|".join(
        sorted({_DECIMAL_JOINT.join(re.findall("[0-9]+", one)) for one in versions}, key=lambda one: (-len(one), one))
    )
    longer = f"(?!{_NO_JOINT}(?:{known})[0-9])" if known else ""
    version = f"(?:{_TIED_VERSION_OF_FAMILY}{f'|{JOINT}v?(?:{known})' if known else ''})?"
    return found._replace(pattern=f"{found.pattern.removesuffix(_after(end))}{longer}{version}{_after(end)}")


def _between(pieces: list[str], place: int) -> str:
    """What may stand before a piece that is not the first, by what stands before it in the name."""
    piece, before = pieces[place], pieces[place - 1]
    if not _is_joint(before):
        apart = piece.isdigit() and before.isalpha() and len(before) >= _LETTERS_BEFORE_DIGITS
        return _NO_JOINT if apart else ""
    first, digits = pieces[place - 2], "".join(pieces[place : place + 2])
    if first.isdigit() and piece.isdigit():
        return _DECIMAL_JOINT
    is_version = piece.isdigit() or re.fullmatch(r"v\d+", digits) is not None
    return _NO_JOINT if (is_version and first.isalpha()) or (first.isdigit() and piece.isalpha()) else JOINT


def _is_point(pieces: list[str], place: int) -> bool:
    return (
        pieces[place] == "."
        and pieces[place - 1].isdigit()
        and pieces[place + 1 : place + 2] != []
        and pieces[place + 1].isdigit()
    )


def _is_joint(piece: str) -> bool:
    return piece[0].isspace() or piece[0] in "_-"


def _before(first: str) -> str:
    return f"(?<!{_of_a_word(first)})" if _of_a_word(first) else ""


def _after(last: str) -> str:
    return f"(?!{_of_a_word(last)})" if _of_a_word(last) else ""


def _of_a_word(edge: str) -> str:
    """The characters beside the edge of a name that make it a part of a longer word. None where writing has no spaces between words."""
    if edge.isascii():
        return "[a-z0-9]" if edge.isalnum() else ""
    return "" if unicodedata.category(edge) == "Lo" or not edge.isalnum() else r"[^\W_]"
