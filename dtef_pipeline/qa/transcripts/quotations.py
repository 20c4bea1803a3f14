"""Finding a quotation in a text: character by character, or apart from spelling differences of careful copies.

Everything here is linear in the length of the texts.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from dtef_pipeline.qa.transcripts.corpus import replace_unreadable

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
    for part in filter(None, (piece.strip(_SPACE_MARK) for piece in _ELLIPSIS.split(relax_text(quote).text))):
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
                if self._gap is not None and before and _DASH_MARK not in (before, form):
                    self._write(_SPACE_MARK, self._gap, self._gap + 1)
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


INDEX_KEYS = ("source_index", "source_id")
"""Keys that models use for the number of a source."""
_LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """One citation and the result of its check."""

    source_index: int | None
    """Place of the source among those shown, from 0; None: the citation names no source."""
    quote: str | None
    """None: there is no quotation, or it is not text."""
    exact: int
    """1: it occurs in that source character by character, apart from outer white space; 0: it does not."""
    relaxed: int
    """1: it occurs there apart from case, quotation marks, dashes, white space, compatibility forms and ellipses; 0: it does not."""
    reason: str | None
    """Why `exact` is 0: the quotation is `found_elsewhere` or `not_found`; `index_out_of_range`: no source has this number; `bad_index`: it is
    not a number; `empty_quote`: nothing is quoted; `no_content`: the source has no text."""
    spans: tuple[Span, ...] = ()
    """Its places in the source, in order: several if it has ellipses; empty: it was not found."""

    @property
    def span(self) -> Span | None:
        """The span from the first place to the last."""
        return Span(self.spans[0].start, self.spans[-1].end) if self.spans else None


def check_citations(context: Sequence[Any], citations: Iterable[Any]) -> list[CheckedCitation]:
    """Look up each citation in the source that it names, in order.

    Args:
        context: the sources in the order shown: mappings with a key `page_content`, or objects with this attribute.
        citations: mappings with `source_index` (or `source_id`) and `quote`, as a model or a file gave them; no value raises an error.
            Numbers count from 0, never from the end; true, "0" and 0.0 are not valid.
    """
    texts = [_read_content(source) for source in context]
    relax = cache(lambda index: relax_text(texts[index] or ""))
    return [_check_citation(texts, relax, citation) for citation in citations]


def compute_existence_rate(checks: Sequence[int]) -> float | None:
    """Return the share of citations that were found, 0-1, higher is better; None without citations."""
    return sum(checks) / len(checks) if checks else None


def compute_pooled_existence(answers: Iterable[Sequence[int]]) -> float | None:
    """Return the share over all citations of several answers, so that an answer weighs by the number of its citations."""
    return compute_existence_rate([check for checks in answers for check in checks])


def _check_citation(texts: Sequence[str | None], relax: Callable[[int], RelaxedText], citation: Any) -> CheckedCitation:
    index = read_named_source(citation)
    index = index if isinstance(index, int) and not isinstance(index, bool) else None
    quote = citation.get("quote") if isinstance(citation, Mapping) else None
    quote = quote if isinstance(quote, str) else None
    quoted = None if quote is None else replace_unreadable(quote)
    if index is None:
        return CheckedCitation(None, quoted, 0, 0, "bad_index")
    if not 0 <= index < len(texts):
        return CheckedCitation(index if abs(index) <= _LARGEST_INDEX else None, quoted, 0, 0, "index_out_of_range")
    if quote is None or not quote.strip():
        return CheckedCitation(index, quoted, 0, 0, "empty_quote")
    text = texts[index]
    if text is None:
        return CheckedCitation(index, quoted, 0, 0, "no_content")
    if span := find_exact_span(quote, text):
        return CheckedCitation(index, quoted, 1, 1, None, (span,))
    spans = find_relaxed_spans(quote, relax(index))
    elsewhere = any(candidate is not None and quote.strip() in candidate for candidate in texts)
    return CheckedCitation(index, quoted, 0, int(bool(spans)), "found_elsewhere" if elsewhere else "not_found", spans)


def read_named_source(citation: Any) -> Any:
    """Return a citation's value for the number of its source, unchecked, or None if it has none."""
    return next((citation[key] for key in INDEX_KEYS if key in citation), None) if isinstance(citation, Mapping) else None


def _read_content(source: Any) -> str | None:
    """Return the text of a source, or None if missing or blank."""
    content = source.get("page_content") if isinstance(source, Mapping) else getattr(source, "page_content", None)
    return content if isinstance(content, str) and content.strip() else None
