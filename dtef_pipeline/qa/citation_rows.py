"""The rows of `qa_citations`: every quotation of a response, looked up in the sources that the model was shown."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.tables import OF_ONE_RESPONSE, QA_CITATIONS
from dtef_pipeline.qa.transcripts.citations import check_citations, named_source
from dtef_pipeline.qa.transcripts.cited_reply import read_cited

VERBATIM_SCORER = "verbatim"
"""Scores the quotations of responses about documents."""
_CITED_BY = tuple(one.name for one in OF_ONE_RESPONSE)


class ShownSource(NamedTuple):
    """A chunk as a prompt showed it."""

    doc_id: str
    page_content: str | None
    """None: the documents that there are now have no such chunk."""


def shown_sources(context: pa.Table, documents: pa.Table) -> dict[tuple[str, str], list[ShownSource]]:
    """By item and condition the chunks that were shown, in the order of their numbers.

    Tables: `qa_context` and `qa_documents` of one part; the text of a chunk that a remote server found stands in the context itself.
    """
    texts = dict(zip(documents["doc_id"].to_pylist(), documents["page_content"].to_pylist(), strict=True))
    found: dict[tuple[str, str], list[ShownSource]] = defaultdict(list)
    for row in context.sort_by([("item_id", "ascending"), ("condition", "ascending"), ("rank", "ascending")]).to_pylist():
        if row["doc_id"] is not None:
            text = row["page_content"] if row["page_content"] is not None else texts.get(row["doc_id"])
            found[row["item_id"], row["condition"]].append(ShownSource(row["doc_id"], text))
    return found


def citation_rows(responses: pa.Table, shown: Mapping[tuple[str, str], Sequence[ShownSource]]) -> pa.Table:
    """One row per citation of an answered response, in their order. `responses`: rows of `qa_responses`."""
    answered = responses.filter(pc.equal(responses["call_status"], "answered"))
    named = answered.select(list(_CITED_BY)).to_pylist()
    rows: list[dict[str, Any]] = []
    for row, text in zip(named, answered["response"].to_pylist(), strict=True):
        sources = shown.get((row["item_id"], row["condition"]), [])
        rows += [{**row, **one} for one in _checked(text, sources)]
    return pa.Table.from_pylist(rows, schema=QA_CITATIONS)


def _checked(text: str | None, sources: Sequence[ShownSource]) -> Iterator[dict[str, Any]]:
    citations = read_cited(text).citations
    context = [{"page_content": source.page_content} for source in sources]
    for place, (citation, found) in enumerate(zip(citations, check_citations(context, citations), strict=True)):
        index = found.source_index
        yield {
            "position": place,
            "source_index": json.dumps(named_source(citation), default=str),
            "doc_id": sources[index].doc_id if index is not None and 0 <= index < len(sources) else None,
            "quote": found.quote,
            "exact": bool(found.exact),
            "relaxed": bool(found.relaxed),
            "reason": found.reason,
            "begin": found.span.start if found.span else None,
            "end": found.span.end if found.span else None,
        }
