"""The prompts of a part under one condition, beside those of others; and what was retrieved for items about documents."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.prompt_rows import (
    OPTION_ORDERS,
    AskSettings,
    build_cited_prompts,
    build_plain_prompts,
    merge_with_other_conditions,
)
from dtef_pipeline.qa.tables import QA_CONTEXT
from dtef_pipeline.qa.transcripts.chunks import DOCUMENT_SCHEMA, build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.retriever import Retrieval, SourceText, make_retriever
from tests.made.qa_items import BIRD, BIRDS_SHOWN, KEEPER, LIGHTHOUSE, ROWERS, light_documents, rows_of_items

SETTINGS = [
    (AskSettings(), "letters"),
    (AskSettings("cot", 5, "turns", "rotated-2"), "cot,5-shot-turns,rotated-2"),
    (AskSettings("parens", 1), "parens,1-shot"),
    (AskSettings(order="rotated-3"), "letters,rotated-3"),
]


class TestConditions:
    @pytest.mark.parametrize(("how", "spelled"), SETTINGS)
    def test_settings_have_one_spelling_that_is_read_back(self, how: AskSettings, spelled: str) -> None:
        assert how.condition(["choice"], about_documents=False) == spelled
        assert AskSettings.parse_spelling(spelled) == how

    def test_of_items_about_documents_only_the_chunks_count(self) -> None:
        how = AskSettings("cot", 5, retriever="hybrid", k=7)
        assert how.condition(["Yes/No", "ListOne"], about_documents=True) == "hybrid,7-chunks"
        assert AskSettings.parse_spelling("hybrid,7-chunks") == AskSettings(retriever="hybrid", k=7)

    def test_items_without_options_have_one_template_and_no_order(self) -> None:
        assert AskSettings("cot", 2).condition(["number"], about_documents=False) == "plain,2-shot"
        assert AskSettings.parse_spelling("plain,2-shot") == AskSettings(few_shot=2)
        assert AskSettings(few_shot_as="turns").condition(["choice"], about_documents=False) == "letters", "without an example"
        with pytest.raises(ConfigError, match="order rotated-1"):
            AskSettings(order="rotated-1").condition(["code"], about_documents=False)

    def test_items_about_documents_cannot_be_asked_without_them(self) -> None:
        with pytest.raises(ConfigError, match=r"type ListOne, Yes/No .*--corpus"):
            AskSettings().condition(["Yes/No", "choice", "ListOne"], about_documents=False)

    @pytest.mark.parametrize("text", ["bm25,0-chunks", "bm25,07-chunks", "google,3-chunks", "letters,0-shot", ""])
    def test_what_is_no_spelling_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigError):
            AskSettings.parse_spelling(text)


class TestPlain:
    def test_a_row_holds_what_is_sent(self) -> None:
        (row,) = build_plain_prompts([BIRD], BIRDS_SHOWN, AskSettings(few_shot=2, few_shot_as="turns")).qa_prompts.to_pylist()
        assert [message["role"] for message in row["messages"]] == ["user", "assistant"] * 2 + ["user"]
        assert BIRD.text in row["messages"][-1]["text"]
        assert (row["suite"], row["part"], row["item_id"], row["n_examples"]) == ("mmlu", "sea_birds", "sea_birds/0", 2)
        assert (row["option_order"], row["response_schema"]) == (None, None)

    @pytest.mark.parametrize("order", OPTION_ORDERS[1:])
    def test_the_order_of_rotated_options_is_reported(self, order: str) -> None:
        (row,) = build_plain_prompts([BIRD], [], AskSettings(order=order)).qa_prompts.to_pylist()
        shown = [line[3:] for line in row["messages"][0]["text"].splitlines() if line[1:3] == ". "]
        assert [BIRD.options[at] for at in row["option_order"]] == shown


class TestCited:
    def test_what_was_found_stands_beside_the_prompt(self) -> None:
        documents = light_documents()
        prompts, context, retrieval = build_cited_prompts(
            [KEEPER], documents, AskSettings(k=2), make_retriever("bm25", documents)
        )
        (prompt,) = prompts.to_pylist()
        assert [message["role"] for message in prompt["messages"]] == ["system", "user"]
        assert prompt["response_schema"]
        rows = context.to_pylist()
        assert [(row["rank"], row["condition"], row["page_content"]) for row in rows] == [
            (0, "bm25,2-chunks", None),
            (1, "bm25,2-chunks", None),
        ]
        assert (rows[0]["doc_id"], rows[0]["contains_quote"], rows[1]["contains_quote"]) == ("light.csv#0.0", True, False)
        assert rows[0]["relevance"] >= rows[1]["relevance"]
        texts = dict(zip(documents["doc_id"].to_pylist(), documents["page_content"].to_pylist(), strict=True))
        places = [prompt["messages"][1]["text"].find(texts[row["doc_id"]]) for row in rows]
        assert -1 < places[0] < places[1]
        (found,) = retrieval.to_pylist()
        assert (found["precision"], found["recall"], found["mrr"]) == (0.5, 1.0, 1.0)

    def test_of_an_item_that_names_no_quotes_it_is_not_known_what_holds_one(self) -> None:
        documents = light_documents()
        _, context, retrieval = build_cited_prompts(
            [replace(KEEPER, quotes=())], documents, AskSettings(k=1), make_retriever("bm25", documents)
        )
        assert context["contains_quote"].to_pylist() == [None]
        assert len(retrieval) == 0

    def test_chunks_that_a_filter_excludes_lower_no_recall(self) -> None:
        """The recall was 1/2, since the chunk of the other interview could not be found."""
        other = replace(LIGHTHOUSE, file="other.csv", metadata={**LIGHTHOUSE.metadata, "FILE": "other.csv"})
        documents = build_documents_table(split_into_chunks([LIGHTHOUSE, other]))
        quoted = replace(KEEPER, quotes=(*KEEPER.quotes, replace(KEEPER.quotes[0], file="other.csv")))
        for where, recalls in (({}, [1.0]), ({"FILE": "light.csv"}, [1.0]), ({"FILE": "none.csv"}, [])):
            asked = AskSettings(k=2, filter=where)
            retrieval = build_cited_prompts([quoted], documents, asked, make_retriever("bm25", documents)).qa_retrieval
            assert retrieval["recall"].to_pylist() == recalls

    def test_a_server_that_finds_nothing_leaves_its_reason_and_what_it_finds_its_text(self) -> None:
        found, none = replace(KEEPER, item_id="d02"), replace(KEEPER, item_id="d03", text="Nothing?")

        class Elsewhere:
            name, is_remote = "remote", True

            def retrieve(self, text: str, k: int, where: object = None) -> Retrieval:
                told = SourceText("far#1", "Ada kept it, summer and winter.", {}, 0.25)
                return Retrieval((told,)) if text == KEEPER.text else Retrieval(problem="HTTP 500")

        how = AskSettings(retriever="remote", k=1)
        prompts, context, retrieval = build_cited_prompts([found, none], DOCUMENT_SCHEMA.empty_table(), how, Elsewhere())
        assert [len(messages) for messages in prompts["messages"].to_pylist()] == [2, 0]
        assert len(retrieval) == 0, "what the server left out is not known"
        assert context["contains_quote"].to_pylist() == [True, None], "whether a chunk holds a quote is seen in the chunk"
        first, second = context.to_pylist()
        assert (first["doc_id"], first["page_content"], first["relevance"]) == (
            "far#1",
            "Ada kept it, summer and winter.",
            0.25,
        )
        assert (second["item_id"], second["rank"], second["doc_id"], second["problem"]) == ("d03", None, None, "HTTP 500")


class TestOtherConditions:
    def test_prompts_of_other_conditions_stay_and_those_of_the_same_are_replaced(self) -> None:
        earlier = pa.concat_tables(
            [build_plain_prompts([BIRD], BIRDS_SHOWN, how).qa_prompts for how in (AskSettings(), AskSettings("cot"))]
        )
        new = build_plain_prompts([BIRD, replace(BIRD, item_id="sea_birds/1")], [], AskSettings("cot")).qa_prompts
        rows = merge_with_other_conditions(earlier, new, ["cot"], rows_of_items(BIRD))
        assert [(row["item_id"], row["condition"]) for row in rows.to_pylist()] == [
            ("sea_birds/0", "letters"),
            ("sea_birds/0", "cot"),
            ("sea_birds/1", "cot"),
        ]

    def test_an_item_that_is_gone_or_expects_something_else_takes_its_prompts_along(self) -> None:
        gone = replace(BIRD, item_id="sea_birds/9")
        earlier = build_plain_prompts([BIRD, gone, replace(BIRD, item_id="sea_birds/2")], [], AskSettings()).qa_prompts
        now = rows_of_items(replace(BIRD, reference="C"), replace(BIRD, item_id="sea_birds/2"))
        none = build_plain_prompts([], [], AskSettings("cot")).qa_prompts
        assert merge_with_other_conditions(earlier, none, ["cot"], now)["item_id"].to_pylist() == ["sea_birds/2"]

    def test_what_was_retrieved_for_an_item_that_is_gone_goes_too(self) -> None:
        documents = light_documents()
        both = [KEEPER, replace(KEEPER, item_id="d02")]
        earlier = build_cited_prompts(both, documents, AskSettings(k=1), make_retriever("bm25", documents)).qa_context
        kept = merge_with_other_conditions(earlier, QA_CONTEXT.empty_table(), ["bm25,2-chunks"], rows_of_items(KEEPER))
        assert kept["item_id"].to_pylist() == ["d01"]


def test_no_items_make_no_prompts() -> None:
    assert [len(rows) for rows in build_plain_prompts([], [ROWERS], AskSettings())] == [0, 0, 0]
    assert AskSettings().condition([], about_documents=False) == "letters"


def test_a_filter_is_part_of_the_condition_and_read_back() -> None:
    where: dict[str, str | int] = {"YEAR": 2024, "NAME": "Quay, 100% Ferry=Co", "PROJECT": "US-002"}
    how = AskSettings(k=3, filter=where)
    spelled = how.condition((), about_documents=True)
    assert spelled == "bm25,3-chunks,PROJECT=US-002,YEAR=2024,NAME=Quay%2C 100%25 Ferry=Co"
    assert AskSettings.parse_spelling(spelled) == how
    for text, told in [
        ("PLANET=x", "'PLANET'; allowed: PROJECT, YEAR"),
        ("YEAR=late", "'late'"),
        ("YEAR=2,YEAR=3", "YEAR twice"),
    ]:
        with pytest.raises(ConfigError, match=re.escape(told)):
            AskSettings.parse_spelling(f"bm25,3-chunks,{text}")


def test_only_documents_that_fit_the_filter_are_shown() -> None:
    documents = light_documents()
    name = documents["name"][0].as_py()
    same = build_cited_prompts([KEEPER], documents, AskSettings(filter={"NAME": name}), make_retriever("bm25", documents))
    assert set(same.qa_context["doc_id"].to_pylist()) == set(documents["doc_id"].to_pylist())
    none = build_cited_prompts([KEEPER], documents, AskSettings(filter={"NAME": "nobody"}), make_retriever("bm25", documents))
    assert none.qa_context["doc_id"].to_pylist() == [None]
    (row,) = none.qa_prompts.to_pylist()
    assert row["condition"] == "bm25,10-chunks,NAME=nobody"
