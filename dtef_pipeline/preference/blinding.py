"""Takes what would tell who wrote a text out of it: names as whole words become `[model]`, everything else stays as it is.

A name counts in any case, with accents, invisible or look-alike characters in it, and with a hyphen, an underscore, white space or, beside a
number, nothing for each other. With a name goes what its maker and the maker's models are called. Longer names go first. A word that only
holds a name (coherent, of Cohere; GPT-40, of GPT-4) stays, and so does what a maker or its models are called beside the given names, if it is
an everyday word and not written as a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
from dtef_pipeline.preference.everyday_names import written_as_names
from dtef_pipeline.preference.spellings import Spelling, exact_spelling, family_spelling, spelling
from dtef_pipeline.text.folded import folded, past_marks

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
