"""A check that a model's quotations occur in the sources it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.qa.transcripts.metadata import replace_unreadable
from dtef_pipeline.qa.transcripts.quotations import RelaxedText, Span, find_exact_span, find_relaxed_spans, relax_text

CITATION_REASONS = (
    "found_elsewhere",
    "not_found",
    "index_out_of_range",
    "bad_index",
    "empty_quote",
    "no_content",
)
"""Why a quotation is not found character by character in the source that it names: it is in another source; it is in none; no source has
this number; the number is not a number; nothing is quoted; the source has no text."""
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
    """Why `exact` is 0: one of CITATION_REASONS."""
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
    texts = _ShownTexts([_read_content(source) for source in context])
    return [_check_citation(texts, citation) for citation in citations]


def compute_existence_rate(checks: Sequence[int]) -> float | None:
    """Return the share of citations that were found, 0-1, higher is better; None without citations."""
    return sum(checks) / len(checks) if checks else None


def compute_pooled_existence(answers: Iterable[Sequence[int]]) -> float | None:
    """Return the share over all citations of several answers, so that an answer weighs by the number of its citations."""
    return compute_existence_rate([check for checks in answers for check in checks])


class _ShownTexts:
    """The texts of the sources, and their relaxed forms, each computed once if needed."""

    def __init__(self, texts: Sequence[str | None]) -> None:
        self.texts = texts
        self._relaxed: dict[int, RelaxedText] = {}

    def relax_source(self, index: int, text: str) -> RelaxedText:
        if index not in self._relaxed:
            self._relaxed[index] = relax_text(text)
        return self._relaxed[index]


def _check_citation(sources: _ShownTexts, citation: Any) -> CheckedCitation:
    index, quote, texts = _read_source_index(citation), _quote_of(citation), sources.texts
    usable_index = index if index is not None and abs(index) <= _LARGEST_INDEX else None
    quoted = None if quote is None else replace_unreadable(quote)
    if index is None:
        return CheckedCitation(None, quoted, 0, 0, "bad_index")
    if not 0 <= index < len(texts):
        return CheckedCitation(usable_index, quoted, 0, 0, "index_out_of_range")
    if quote is None or not quote.strip():
        return CheckedCitation(usable_index, quoted, 0, 0, "empty_quote")
    text = texts[index]
    if text is None:
        return CheckedCitation(usable_index, quoted, 0, 0, "no_content")
    if span := find_exact_span(quote, text):
        return CheckedCitation(usable_index, quoted, 1, 1, None, (span,))
    spans = find_relaxed_spans(quote, sources.relax_source(index, text))
    elsewhere = any(candidate is not None and quote.strip() in candidate for candidate in texts)
    return CheckedCitation(usable_index, quoted, 0, int(bool(spans)), "found_elsewhere" if elsewhere else "not_found", spans)


def read_named_source(citation: Any) -> Any:
    """Return a citation's value for the number of its source, unchecked, or None if it has none."""
    return next((citation[key] for key in INDEX_KEYS if key in citation), None) if isinstance(citation, Mapping) else None


def _read_source_index(citation: Any) -> int | None:
    value = read_named_source(citation)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quote_of(citation: Any) -> str | None:
    quote = citation.get("quote") if isinstance(citation, Mapping) else None
    return quote if isinstance(quote, str) else None


def _read_content(source: Any) -> str | None:
    """Return the text of a source, or None if missing or blank."""
    content = source.get("page_content") if isinstance(source, Mapping) else getattr(source, "page_content", None)
    return content if isinstance(content, str) and content.strip() else None
