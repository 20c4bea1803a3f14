"""Every quotation of a response is looked up in the chunks that its prompt showed, by their numbers there."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.qa.judging.judgement_rows import build_citation_rows, load_shown_sources
from dtef_pipeline.qa.prompt_rows import AskSettings, build_cited_prompts
from dtef_pipeline.qa.tables import QA_CITATIONS, QA_CONTEXT, QA_DOCUMENTS
from dtef_pipeline.qa.transcripts.retriever import make_retriever
from tests.made.qa_items import KEEPER, light_documents, responses_to

DOCUMENTS = light_documents()
CONDITION = "bm25,3-chunks"
CONTEXT = build_cited_prompts([KEEPER], DOCUMENTS, AskSettings(k=3), make_retriever("bm25", DOCUMENTS)).qa_context
SHOWN = load_shown_sources(CONTEXT, DOCUMENTS)


def cited(*citations: Any) -> list[dict[str, Any]]:
    text = json.dumps({"answer": "Ada", "citations": list(citations)})
    return build_citation_rows(responses_to(KEEPER, text, condition=CONDITION), SHOWN).to_pylist()


def number_of(doc_id: str) -> int:
    return [source.doc_id for source in SHOWN["d01", CONDITION]].index(doc_id)


def test_sources_have_the_numbers_under_which_they_were_shown() -> None:
    by_rank = sorted(CONTEXT.to_pylist(), key=lambda row: row["rank"])
    backwards = CONTEXT.take(list(range(len(CONTEXT)))[::-1])
    assert [source.doc_id for source in load_shown_sources(backwards, DOCUMENTS)["d01", CONDITION]] == [
        row["doc_id"] for row in by_rank
    ]


def test_what_a_remote_server_found_is_quoted_from_the_context() -> None:
    rows = [
        {"item_id": "d01", "condition": "c", "rank": 0, "doc_id": "far#1", "page_content": "Far away."},
        {"item_id": "d02", "condition": "c", "problem": "HTTP 500"},
    ]
    found = load_shown_sources(pa.Table.from_pylist(rows, schema=QA_CONTEXT), QA_DOCUMENTS.empty_table())
    assert dict(found) == {("d01", "c"): [("far#1", "Far away.")]}


def test_a_quotation_is_placed_in_its_chunk() -> None:
    at = number_of("light.csv#0.0")
    (row,) = cited({"source_index": at, "quote": " Ada kept it, summer and winter. "})
    assert (row["exact"], row["relaxed"], row["reason"], row["doc_id"]) == (True, True, None, "light.csv#0.0")
    text = SHOWN["d01", CONDITION][at].page_content
    assert text is not None
    assert text[row["begin"] : row["end"]] == "Ada kept it, summer and winter."
    assert (row["item_id"], row["draw"], row["position"], row["source_index"]) == ("d01", 0, 0, str(at))


@pytest.mark.parametrize(
    ("index", "quote", "reason", "relaxed"),
    [
        ("own", 'bo mended "the nets"', "not_found", True),
        ("own", "Ada kept it", "found_elsewhere", False),
        ("own", "purple Thursday", "not_found", False),
        (3, "Bo mended", "index_out_of_range", False),
        (-1, "Bo mended", "index_out_of_range", False),
        (True, "Bo mended", "bad_index", False),
        ("two", "Bo mended", "bad_index", False),
        ("own", " ", "empty_quote", False),
    ],
)
def test_why_a_quotation_is_none(index: Any, quote: str, reason: str, relaxed: bool) -> None:
    (row,) = cited({"source_index": number_of("light.csv#3.0") if index == "own" else index, "quote": quote})
    assert (row["exact"], row["relaxed"], row["reason"]) == (False, relaxed, reason)
    assert (row["begin"] is None) == (not relaxed)
    if index != "own":
        assert (row["doc_id"], row["source_index"]) == (None, json.dumps(index))


def test_all_quotations_are_kept_in_their_order() -> None:
    rows = cited({"source_id": 0, "quote": "Ada"}, {"quote": "Bo"}, {"source_index": 0})
    assert [(row["position"], row["source_index"]) for row in rows] == [(0, "0"), (1, "null"), (2, "0")]


def test_calls_without_a_response_and_responses_without_quotations_have_no_rows() -> None:
    responses = responses_to(KEEPER, None, "Ada.", '{"answer": "Ada", "citations": []}', condition=CONDITION)
    assert build_citation_rows(responses, SHOWN) == QA_CITATIONS.empty_table()


def test_whoever_was_shown_nothing_can_quote_nothing() -> None:
    text = json.dumps({"answer": "Ada", "citations": [{"source_index": 0, "quote": "Ada"}]})
    (row,) = build_citation_rows(responses_to(KEEPER, text, condition="hybrid,1-chunks"), SHOWN).to_pylist()
    assert (row["exact"], row["reason"]) == (False, "index_out_of_range")


def test_a_chunk_that_the_documents_have_no_more_holds_no_quotation() -> None:
    """After other documents were added, prompts of an earlier condition named chunks that nobody knew, and nothing of the part was scored."""
    at = number_of("light.csv#0.0")
    left = DOCUMENTS.filter(pc.not_equal(DOCUMENTS["doc_id"], "light.csv#0.0"))
    text = json.dumps({"answer": "Ada", "citations": [{"source_index": at, "quote": "Ada kept it"}]})
    (row,) = build_citation_rows(responses_to(KEEPER, text, condition=CONDITION), load_shown_sources(CONTEXT, left)).to_pylist()
    assert (row["doc_id"], row["exact"], row["relaxed"], row["reason"]) == ("light.csv#0.0", False, False, "no_content")
