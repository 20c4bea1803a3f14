"""Which responses a judge is shown, and what its rows say; and quotations, looked up in the chunks that the prompt showed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Response
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.judgement_rows import (
    build_citation_rows,
    build_judgement_rows,
    build_skipped_rows,
    iterate_item_arbitrations,
    iterate_looks,
    load_shown_sources,
    select_judged_items,
    select_to_judge,
)
from dtef_pipeline.qa.prompt_rows import AskSettings, build_cited_prompts
from dtef_pipeline.qa.tables import QA_CITATIONS, QA_CONTEXT, QA_DOCUMENTS, QA_JUDGEMENTS
from dtef_pipeline.qa.transcripts.retriever import make_retriever
from tests.made.qa_items import BIRD, KEEPER, ROWERS, light_documents, responses_to, rows_of_items
from tests.made.responses import response

JUDGE = ModelSpec(name="judge", model="openai/judge", max_tokens=300)
ARBITER = Arbiter(JUDGE)
ITEMS = select_judged_items(rows_of_items(BIRD, ROWERS, KEEPER))


def said(look: object, text: str) -> EpisodeResult:
    """The judge's first reply."""
    return EpisodeResult((_reply(look, text),), None)


def _reply(look: object, text: str) -> Response:
    request = look.next([])  # type: ignore[attr-defined]
    return response(0, request_key=request.key, text=text, cost_usd=0.5, prompt_tokens=7, completion_tokens=3)


class TestWhom:
    def test_only_what_a_judge_scores_and_what_was_answered_is_judged(self) -> None:
        responses = pa.concat_tables(
            [responses_to(BIRD, "B"), responses_to(ROWERS, "#### 12", None), responses_to(KEEPER, "Ada")]
        )
        found, _ = select_to_judge(responses, ITEMS, 1.0)
        assert found.select(["item_id", "draw"]).to_pylist() == [{"item_id": "gsm8k/0", "draw": 0}]

    def test_a_sample_leaves_out_failed_calls_too_and_no_item_that_a_judge_does_not_score(self) -> None:
        responses = pa.concat_tables([responses_to(BIRD, "B"), responses_to(ROWERS, "#### 12", None)])
        found, left_out = select_to_judge(responses, ITEMS, 0.0)
        assert (len(found), left_out["item_id"].to_pylist()) == (0, ["gsm8k/0", "gsm8k/0"])

    def test_a_reference_is_shown_with_its_working_where_there_is_one(self) -> None:
        assert ITEMS["gsm8k/0"].reference == "3 * 4 = 12\n#### 12"
        assert select_judged_items(rows_of_items(replace(ROWERS, solution=" ")))["gsm8k/0"].reference == "12"
        assert select_judged_items(rows_of_items(BIRD)) == {}, "no item needs a judge"


class TestLooks:
    def test_every_evaluator_looks_at_every_response(self) -> None:
        looks = list(iterate_looks(responses_to(ROWERS, "It is 12.", "13"), ITEMS, ARBITER, "judge"))
        assert [(look.response["draw"], look.evaluator) for look in looks] == [
            (0, "semantic"),
            (0, "factuality"),
            (1, "semantic"),
            (1, "factuality"),
        ]
        first = looks[0].next([])
        assert first is not None
        assert "It is 12." in first.messages[-1].text
        assert ROWERS.text in first.messages[-1].text
        assert (first.snapshot, first.role) == ("judge", "judge")

    def test_a_judge_learns_nothing_of_who_answered(self) -> None:
        named = responses_to(ROWERS, "It is 12.", model="secret-model", model_variant="maker/secret-model")
        (look, _) = iterate_looks(named, ITEMS, ARBITER, "judge")
        request = look.next([])
        assert request is not None
        assert "secret" not in "".join(message.text for message in request.messages)
        assert look.response["model_variant"] == "maker/secret-model"

    def test_of_a_cited_reply_the_judge_sees_the_answer_alone(self) -> None:
        item = ITEMS["gsm8k/0"]._replace(cites=True)
        (look, _) = iterate_item_arbitrations(
            item, '{"answer": "Ada did", "citations": [{"source_index": 0, "quote": "hush"}]}', ARBITER, "judge"
        )
        assert look.answer == "Ada did"


class TestRows:
    def test_a_row_is_one_look_with_what_it_cost(self) -> None:
        looks = list(iterate_looks(responses_to(ROWERS, "It is 12."), ITEMS, ARBITER, "judge"))
        played = [said(looks[0], '{"score": 0.25, "reason": "so"}'), said(looks[1], '{"score": 2}')]
        first, second = build_judgement_rows(looks, played).to_pylist()
        assert (first["evaluator"], first["score"], first["reason"], first["explanation"]) == ("semantic", 0.25, None, "so")
        assert (first["item_id"], first["condition"], first["model_variant"], first["draw"]) == ("gsm8k/0", "plain", "p/m", 0)
        assert (first["cost_usd"], first["prompt_tokens"], first["completion_tokens"], first["attempts"]) == (0.5, 7, 3, 1)
        assert (second["score"], second["reason"]) == (None, "unreadable")

    def test_a_call_that_failed_has_its_error_and_no_score(self) -> None:
        looks = list(iterate_looks(responses_to(ROWERS, "It is 12."), ITEMS, ARBITER, "judge"))
        key = looks[0].next([])
        assert key is not None
        failed = EpisodeResult((), Failure(key.key, "HTTP 500", 3))
        row = build_judgement_rows(looks[:1], [failed]).to_pylist()[0]
        assert (row["score"], row["reason"], row["error"], row["cost_usd"], row["raw"]) == (None, "error", "HTTP 500", None, [])

    def test_a_response_outside_the_sample_has_a_row_per_evaluator_that_says_so(self) -> None:
        same_maker = responses_to(ROWERS, "12", model_variant="openai/gpt-4.1-mini")
        rows = build_skipped_rows(same_maker, ITEMS, ARBITER, "judge")
        assert rows.schema == QA_JUDGEMENTS
        assert [(row["evaluator"], row["score"], row["reason"], row["attempts"]) for row in rows.to_pylist()] == [
            ("semantic", None, "skipped_sample", 0),
            ("factuality", None, "skipped_sample", 0),
        ]
        assert rows["self_judged"].to_pylist() == [True, True]
        assert build_skipped_rows(responses_to(ROWERS, "12"), ITEMS, ARBITER, "judge")["self_judged"].to_pylist() == [
            False,
            False,
        ]


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
        (3, "Bo mended", "index_out_of_range", False),
        ("two", "Bo mended", "bad_index", False),
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
