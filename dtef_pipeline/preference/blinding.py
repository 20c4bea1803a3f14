"""Takes what would tell who wrote a text out of it: names as whole words become `[model]`, everything else stays as it is.

A name counts in any case, with accents, invisible or look-alike characters in it, and with a hyphen, an underscore or white space for each
other. Longer names go first. A word that only holds a name (coherent, of Cohere; GPT-40, of GPT-4) stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from dtef_pipeline.asking.makers import maker_named, maker_of
from dtef_pipeline.text.folded import folded, past_marks

IN_PLACE_OF_NAMES = "[model]"
_PARTS_BREAK_AT = re.compile(r"[\s_-]+")
_NAME_PARTED_BY = r"[\s_-]{1,8}"
"""What may stand between the parts of a name; more of it than this is no name any more."""
_SHORTEST_PART = 4
"""Letters and digits of the last part of a model string (`org/name`) that is taken for a name of its own."""


class Scrubbed(NamedTuple):
    """A text without names."""

    text: str
    replaced: int
    """Names that were taken out."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """The names that nobody may read, made by `blinding`."""

    cores: tuple[str, ...]
    """Of each name the longest part, folded: a text without it does not hold the name."""
    patterns: tuple[str, ...]
    """Of each name, the longest name first."""

    def scrub(self, text: str) -> Scrubbed:
        """The text with `[model]` in place of each name. Linear in the length of the text."""
        plain, places = folded(text)
        there = tuple(pattern for core, pattern in zip(self.cores, self.patterns, strict=True) if core in plain)
        parts, end, replaced = [], 0, 0
        for match in _compiled(there).finditer(plain) if there else ():
            parts += [text[end : places[match.start()]], IN_PLACE_OF_NAMES]
            # The marks over its last letter go with it.
            end = past_marks(text, places[match.end() - 1] + 1)
            replaced += 1
        return Scrubbed("".join([*parts, text[end:]]) if parts else text, replaced)


def blinding(names: Iterable[str]) -> Blinding:
    """What takes these names out of texts. A name without a letter or digit is none."""
    known: dict[str, str] = {}
    for name in names:
        plain, _ = folded(name)
        if parts := [part for part in _PARTS_BREAK_AT.split(plain) if part]:
            pattern = _NAME_PARTED_BY.join(map(re.escape, parts))
            if any(character.isalnum() for character in plain):
                known[f"{_before(parts[0][0])}{pattern}{_after(parts[-1][-1])}"] = max(parts, key=len)
    ordered = sorted(known.items(), key=lambda one: (-len(one[0]), one[0]))
    return Blinding(tuple(core for _, core in ordered), tuple(pattern for pattern, _ in ordered))


def names_of_model(name: str, variant: str) -> tuple[str, ...]:
    """What would give a model away: its name, its string with and without provider and settings, and what its maker is called.

    Names of makers that are everyday words as well (Opus, Meta) are left, unless they are the maker's own name.
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


def _before(first: str) -> str:
    return f"(?<!{_of_a_word(first)})" if _of_a_word(first) else ""


def _after(last: str) -> str:
    return f"(?!{_of_a_word(last)})" if _of_a_word(last) else ""


def _of_a_word(edge: str) -> str:
    """The characters beside the edge of a name that make it a part of a longer word. None where writing has no spaces between words."""
    if edge.isascii():
        return "[a-z0-9]" if edge.isalnum() else ""
    return "" if unicodedata.category(edge) == "Lo" or not edge.isalnum() else r"[^\W_]"
