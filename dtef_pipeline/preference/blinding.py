"""Takes what would tell who wrote a text out of it: names as whole words become `[model]`, everything else stays as it is.

A name counts in any case, with accents, invisible or look-alike characters in it, and with a hyphen, an underscore, white space or, beside a
number, nothing for each other. With a name goes what its maker and the maker's models are called. Longer names go first. A word that only
holds a name (coherent, of Cohere; GPT-40, of GPT-4) stays, and so does what a maker or its models are called beside the given names, if it is
an everyday word and not written as a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.asking.makers import (
    EVERYDAY_NAMES,
    FURTHER_MAKERS,
    KNOWN_MAKERS,
    SERVING,
    Maker,
    maker_named,
    maker_of,
    makers_said_in,
)
from dtef_pipeline.text.folded import folded, past_marks

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


Spot = tuple[int, int]
"""The first character of a word in the folded text, and the one past its last."""
_VERSION_TIED = re.compile(r"[_-]?v?\d")
_VERSION_BESIDE = re.compile(
    r"[\s_-]{1,3}(?:v\d|\d+\.\d|\d+b(?![a-z])|ai(?![a-z0-9])|labs(?![a-z0-9]))|[\s_-]{1,3}r(?:\+|(?![a-z0-9]))"
)
_NEAR = 3
"""Characters that may stand between a word and the name it stands beside."""
_SENTENCE_LOOKED_BACK = 200
_QUOTES = " \t\"'`*_([{<#>~|“”„‘’«»"
_ENDS_A_SENTENCE = ".!?:;…。！？：；-•–—"
_MAY_BEGIN_BIG = frozenset({"I", "I'm", "I’m"})


def written_as_names(
    text: str, plain: str, places: Sequence[int], words: Sequence[Spot], names: Sequence[Spot]
) -> Iterator[Spot]:
    """Those of the words that are written as names.

    Args:
        text: as it was written.
        plain: folded.
        places: of each character of `plain`, where it stands in `text`.
        words: where everyday words that are names stand, in order.
        names: where other names stand.
    """
    ends = {last for _, last in names}
    starts = {first for first, _ in names}
    for first, last in words:
        gaps = [plain[end:first] for end in range(max(0, first - _NEAR), first) if end in ends]
        gaps += [plain[last:start] for start in range(last, last + _NEAR + 1) if start in starts]
        versioned = any(one.isdigit() for one in plain[first:last])
        at_once = versioned and not any(one.isspace() for one in plain[first:last])
        tied = at_once or any(gap in {"-", "_", "/"} for gap in gaps) or _VERSION_TIED.match(plain, last) is not None
        beside = versioned or any(gap.strip() in {"", "'s"} for gap in gaps) or _VERSION_BESIDE.match(plain, last) is not None
        if tied or (text[places[first]].isupper() and (beside or _is_inside_a_sentence(text, places[first]))):
            yield first, last


def _is_inside_a_sentence(text: str, place: int) -> bool:
    before = text[max(0, place - _SENTENCE_LOOKED_BACK) : place].rpartition("\n")[2].rstrip(_QUOTES)
    if not before or before[-1] in _ENDS_A_SENTENCE:
        return False
    earlier, _, word = before.replace("\t", " ").rpartition(" ")
    word, earlier = word.strip(_QUOTES), earlier.rstrip(_QUOTES)
    if not word[:1].isupper() or word.rstrip(",") in _MAY_BEGIN_BIG:
        return True
    return not earlier or earlier[-1] in _ENDS_A_SENTENCE


IN_PLACE_OF_NAMES = "[model]"
BLINDING_VERSION = 2
"""Kept with each pair, so that it is shown as it was shown before. 1: parts of names from 4 characters on. 2: the very names of the two models
of a pair, however short, what is short for them, and more of what makers are called."""
_NO_ORGANISATIONS = frozenset({*SERVING, "baseline", "imported", "stored", "models", "accounts"})
_SHORT_FOR_A_MODEL = re.compile(r"[a-z]\d{1,2}|\d{1,2}o")
"""What people call a model by a part of its name: K2, R1, 4o."""
_SHORTEST_PART = 4
"""Letters and digits of the last part of a model string (`org/name`) that is taken for a name of its own."""
_SIZE_IN_BRACKETS = re.compile(r"\s{0,8}\([^()]{0,40}\)\s{0,8}\Z")
_FIRST_VERSION = re.compile(r"[0-9]{1,6}(?:[._-][0-9]{1,6}(?![0-9a-z])){0,2}")


class Scrubbed(NamedTuple):
    """A text without names."""

    text: str
    replaced: int
    """Names that were taken out."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """The names that nobody may read, made by `blinding`; the longest first."""

    sure: tuple[Spelling, ...]
    """Names that are names wherever they stand."""
    everyday: tuple[Spelling, ...] = ()
    """Names that are everyday words as well."""
    earlier: Blinding | None = None
    """The same names as version 1 hid them; None: it is of that version itself."""

    def of_pair(self, names: Iterable[str], version: int = BLINDING_VERSION) -> Blinding:
        """For a pair of models with these names, as `BLINDING_VERSION` says: with their very names, which may be words of other texts."""
        if version < BLINDING_VERSION:
            return self.earlier or self
        further = exact_spellings(frozenset(names)).difference(self.sure)
        return Blinding(_longest_first([*self.sure, *further]), self.everyday) if further else self

    def scrub(self, text: str) -> Scrubbed:
        """The text with `[model]` in place of each name. Linear in the length of the text."""
        plain, places = folded(text)
        parts, end, replaced = [], 0, 0
        for first, last in self._spots(text, plain, places):
            parts += [text[end : places[first]], IN_PLACE_OF_NAMES]
            # The marks over its last letter go with it.
            end = past_marks(text, places[last - 1] + 1)
            replaced += 1
        return Scrubbed("".join([*parts, text[end:]]) if parts else text, replaced)

    def _spots(self, text: str, plain: str, places: Sequence[int]) -> list[tuple[int, int]]:
        """Where names stand in the folded text, in order: (first, past the last) character."""
        sure = _found(self.sure, plain)
        words = _found(self.everyday, plain)
        return _apart(sure, written_as_names(text, plain, places, words, sure)) if words else sure


def blinding(names: Iterable[str]) -> Blinding:
    """What takes these names out of any text, and all that they tell: the family, the maker, its other products. `of_pair` takes out more.

    A name without a letter is none, and neither is a single Latin letter. The given names are names wherever they stand as whole words; parts of
    them and what their makers are called besides are not where they stand as the everyday words that they are too.
    """
    names = set(names)
    return replace(_blinding(names, (*KNOWN_MAKERS, *FURTHER_MAKERS)), earlier=_blinding(names, KNOWN_MAKERS))


def _blinding(names: set[str], makers: Sequence[Maker]) -> Blinding:
    given = {part for name in names for part in _parts_of(name)}
    words = EVERYDAY_NAMES - {_plain(name) for name in names}
    found = {_plain(name): spelling(name) for name in given} | _maker_spellings(given, makers)
    known = {plain: one for plain, one in found.items() if one is not None}
    return Blinding(
        _longest_first(one for plain, one in known.items() if plain not in words),
        _longest_first(one for plain, one in known.items() if plain in words),
    )


def _plain(name: str) -> str:
    return folded(name)[0].strip()


def _parts_of(name: str) -> Iterator[str]:
    """A name as it is, without the size in brackets, and what stands behind its last slash: `gpt-4` of `openai/gpt-4`."""
    yield name
    yield _SIZE_IN_BRACKETS.sub("", name)
    last = name.rpartition("/")[2]
    if len(last) >= _SHORTEST_PART:
        yield last


@lru_cache(maxsize=4096)
def exact_spellings(names: frozenset[str]) -> frozenset[Spelling]:
    """The very names of models, of all that is stored as names of them: whole, by each part of `org/name`, and what is short for them."""
    parts = {form for name in names for part in _exact_parts(name) for form in _forms(part)}
    return frozenset(filter(None, map(exact_spelling, parts)))


def _forms(name: str) -> tuple[str, ...]:
    """A name and its capitals, some of which look like Latin letters where the small ones do not: Я Н Д."""
    return (name,) if name.isascii() else (name, name.upper())


def _exact_parts(name: str) -> Iterator[str]:
    whole = _SIZE_IN_BRACKETS.sub("", name).partition("[")[0].partition("@")[0].strip()
    *folders, last = whole.split("/")
    if not folders:
        # A letter by itself is a label of an imported file.
        yield from [whole] if len(whole) > 1 else ()
        return
    yield from (one for one in folders if one.lower() not in _NO_ORGANISATIONS)
    yield from (last, last.partition(":")[0])
    pieces = re.split(r"[\s_.:-]+", last.lower())
    yield from (one for one in pieces if len(pieces) > 1 and _SHORT_FOR_A_MODEL.fullmatch(one))


def _maker_spellings(names: Iterable[str], makers: Sequence[Maker]) -> dict[str, Spelling | None]:
    """What the makers of the named models, and all their models, are called, folded: with versions, where it is what models are called."""
    versions: dict[Maker, set[str]] = {}
    for name in names:
        for maker in makers_said_in(name, makers):
            its = {_plain(said) for said in (*maker.said, *maker.said_too)}
            found = [] if _plain(name) in its else _FIRST_VERSION.findall(_plain(name))[:1]
            versions.setdefault(maker, set()).update(found)
    spelled: dict[str, Spelling | None] = {}
    for known in sorted(versions):
        for said in (known.name, *known.said, *known.said_too):
            of_models = any(said.lower().startswith(family.rstrip("-")) for family in known.families)
            for form in _forms(said) if known in FURTHER_MAKERS else (said,):
                spelled[_plain(form)] = family_spelling(form, versions[known]) if of_models else spelling(form)
    return spelled


def _longest_first(spellings: Iterable[Spelling]) -> tuple[Spelling, ...]:
    return tuple(sorted(spellings, key=lambda one: (-one.length, -len(one.pattern), one.pattern)))


def _found(names: Sequence[Spelling], plain: str) -> list[tuple[int, int]]:
    there = tuple(name.pattern for name in names if name.core in plain)
    return [match.span() for match in _compiled(there).finditer(plain)] if there else []


def _apart(sure: Sequence[tuple[int, int]], further: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sure spots, and those of the others that overlap none of them, in order."""
    taken = {place for first, last in sure for place in range(first, last)}
    return sorted([*sure, *(one for one in further if taken.isdisjoint(range(*one)))])


def names_of_model(name: str, variant: str) -> tuple[str, ...]:
    """What would give a model away: its name, its string with and without provider and settings, and what its maker is called.

    What else its maker and the maker's models are called is added where texts are blinded (`blinding`).
    """
    return tuple(sorted(set(_names(name, variant))))


def _names(name: str, variant: str) -> Iterator[str]:
    string = variant.partition("[")[0]
    yield from (one for one in (name, variant, string) if one)
    last = string.rpartition("/")[2]
    if len(last) >= _SHORTEST_PART:
        yield last
    maker = maker_of(string)
    if maker is not None:
        yield maker
    if maker is not None and (known := maker_named(maker)) is not None:
        yield from known.said


@lru_cache(maxsize=512)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))
