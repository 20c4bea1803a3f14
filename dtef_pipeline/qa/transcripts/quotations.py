"""Finding a quotation in a text: character by character, or apart from spelling differences of careful copies.

Everything here is linear in the length of the texts.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_QUOTATION_MARKS = "\"'`´‘’‚‛“”„‟«»‹›′″‵‶＂＇「」『』"
_DASH_MARKS = "-‐‑‒–—―−﹘﹣－"
_UNSEEN = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_UNSEEN_CHARACTER = re.compile(f"[{_UNSEEN}]")
_QUOTE_MARK, _DASH_MARK, _SPACE_MARK = "'", "-", " "
_THREE_DOTS = r"\.(?:\.\.++|(?: \.){2,}+)"
_ELLIPSIS = re.compile(rf"\[ ?{_THREE_DOTS} ?\]|\( ?{_THREE_DOTS} ?\)|{_THREE_DOTS}")


class Span(NamedTuple):
    """A part of a text, from its first character to its end (exclusive)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RelaxedText:
    """A text in the form in which quotations are compared, with the original place of each character."""

    text: str
    starts: array[int]
    """Start in the original, one per character."""
    ends: array[int]
    """End in the original (exclusive), one per character."""

    def span(self, start: int, end: int) -> Span:
        """Return the part of the original that became the characters from `start` to `end` (exclusive)."""
        return Span(self.starts[start], self.ends[end - 1])


def find_exact_span(quote: str, text: str) -> Span | None:
    """Find the first exact occurrence of a quotation without its outer white space; None if not found or blank."""
    needle = quote.strip()
    start = text.find(needle) if needle else -1
    return Span(start, start + len(needle)) if start >= 0 else None


def find_relaxed_spans(quote: str, text: str | RelaxedText) -> tuple[Span, ...]:
    """Find the parts of a quotation in a text, in order; empty: a part was not found.

    The comparison ignores compatibility forms (NFKC), case, kinds of quotation marks, kinds of dashes and spaces around them, white space
    and invisible characters. An ellipsis (`…`, `...`, `[...]`) in the quotation matches any words; the parts around it must occur in the
    same order, and the nearest occurrence of each counts.
    """
    relaxed_text = relax_text(text) if isinstance(text, str) else text
    spans: list[Span] = []
    place = 0
    for part in _split_at_ellipses(quote):
        start = relaxed_text.text.find(part, place)
        if start < 0:
            return ()
        place = start + len(part)
        spans.append(relaxed_text.span(start, place))
    return tuple(spans)


def relax_text(text: str) -> RelaxedText:
    """Return the text in the form in which quotations are compared: one kind of quotation mark and dash, single spaces but none beside a
    dash, no case."""
    builder = _Builder()
    for place, character in enumerate(text):
        builder.add(_relax_character(character), place)
    return RelaxedText("".join(builder.characters), builder.starts, builder.ends)


class _Builder:
    """Collects normalised characters with their original positions."""

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.starts, self.ends = array("q"), array("q")
        self._gap: int | None = None
        """Start of the white space that has not been written yet."""

    def add(self, form: str, place: int) -> None:
        if form == _SPACE_MARK:
            self._gap = place if self._gap is None else self._gap
        elif form:
            before = self.characters[-1] if self.characters else ""
            if form == before == _DASH_MARK or (self._gap is None and before and self._try_join(before, form)):
                self.ends[-1] = place + 1
            else:
                self._write_gap(before, form)
                for character in form:
                    self._write(character, place, place + 1)
            self._gap = None

    def _try_join(self, before: str, form: str) -> bool:
        """Join a combining mark to the character before it, if the two are one character."""
        if form.isascii() or not unicodedata.combining(form[0]):
            return False
        together = unicodedata.normalize("NFC", before + form)
        if len(together) == 1:
            self.characters[-1] = together
        return len(together) == 1

    def _write_gap(self, before: str, form: str) -> None:
        if self._gap is not None and before and _DASH_MARK not in (before, form):
            self._write(_SPACE_MARK, self._gap, self._gap + 1)

    def _write(self, character: str, start: int, end: int) -> None:
        self.characters.append(character)
        self.starts.append(start)
        self.ends.append(end)


@lru_cache(maxsize=20_000)
def _relax_character(character: str) -> str:
    """Return the form in which a character is compared: one space for any white space, nothing for invisible characters.

    Characters are handled one by one, so that the time is bounded.
    """
    if character in _QUOTATION_MARKS:
        return _QUOTE_MARK
    if character in _DASH_MARKS:
        return _DASH_MARK
    if _UNSEEN_CHARACTER.match(character):
        return ""
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return _SPACE_MARK if form.isspace() else form


def _split_at_ellipses(quote: str) -> list[str]:
    """Return the parts between the ellipses of a quotation."""
    return [part for piece in _ELLIPSIS.split(relax_text(quote).text) if (part := piece.strip(_SPACE_MARK))]
