"""Identities, letter by letter: when one moves, every answer that was paid for is bought again, or a history breaks in two.

A failure here is never mended by writing the new value down. Whole prompts are in `blueprint/golden/`, with their ids and the hashes
of their segments; the plain prompt id of the first release is in `test_identity.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from assets.survey.predictor import choose_limited_prompts
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request_list import RequestList
from dtef_pipeline.identity import (
    compute_blueprint_hash,
    compute_messages_id,
    digest,
    partition_key,
    prompt_id,
    request_key,
    request_keys,
)
from dtef_pipeline.qa.judging.arbiter import Arbiter, iterate_arbitrations, judge_snapshot
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.prompt_rows import AskSettings, build_cited_prompts, build_plain_prompts, truth_id
from dtef_pipeline.qa.stages import QA_CALLS, build_qa_requests
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.retriever import make_retriever
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.baselines.baselines import predict_distribution
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.identity import make_question_key
from dtef_pipeline.survey.observations import SHUFFLE_SEED
from dtef_pipeline.survey.predictions import CALLS
from dtef_pipeline.survey.question_draw import draw_segment_order
from dtef_pipeline.survey.scoring.references import CEILING_SEED, compute_reference_scores
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.tables import BLUEPRINTS, PREDICTIONS
from tests.made.qa_items import BIRD, BIRDS_SHOWN, KEEPER, ROWERS, TWICE, light_documents
from tests.made.scores import survey_rows

QUESTION = "q-Überblick"
OPTIONS = ["Yes, “always”", "No", "Don't know 🤷"]
PROMPT = "0123456789abcdef0123456789abcdef"
VARIANT = "openai/gpt-4.1-mini[max_tokens=256,temperature=0]"


def test_a_digest_is_of_canonical_json() -> None:
    assert digest() == "4f53cda18c2baa0c0354bb5f9a3ecbe5"
    assert digest('é\n"', 1, 0.5, None, True, ["a", ("b",)], {"z": 1, "a": 2}) == "f2dd3e78d24b260434be95813db8f3b4"


def test_prompt_ids() -> None:
    schema = '{"type":"array"}'
    assert prompt_id("Be brief.", "Zeile 1\nline 2", QUESTION, OPTIONS) == "35a4d8ff27062ebc64616b1b6c3be8d8"
    assert prompt_id("", "Zeile 1\nline 2", QUESTION, OPTIONS) == "1c8c9163af45802a7dbf051c74f75b7c"
    assert prompt_id("Be brief.", "user", QUESTION, OPTIONS, response_schema=schema) == "087df720963cc148a01163162835bf51"
    assert prompt_id("Be brief.", "user", QUESTION, OPTIONS, answer_tokens=1024) == "8440b2329f4a8192b483057b2691f1aa"
    assert (
        prompt_id("Be brief.", "user", QUESTION, OPTIONS, response_schema=schema, answer_tokens=1024)
        == "57a651b88829c435cfbc55803b5ff33f"
    )
    assert prompt_id("Be brief.", "user", [QUESTION, "q2"], [OPTIONS, ["a", "b"]]) == "e96a8941dd05cffbcef2665b246b2822"
    assert (
        prompt_id("Be brief.", "user", (QUESTION, "q2"), (tuple(OPTIONS), ("a", "b")), answer_tokens=288)
        == "137d726f2ee46c4e7f82aa51dd0b6939"
    )


def test_ids_of_conversations() -> None:
    said = [("system", "Be brief."), ("user", "Zeile 1\nline 2"), ("assistant", "…"), ("user", "Why?")]
    assert compute_messages_id(said) == "0bf3465798b6ea1e92785df611dacba3"
    assert (
        compute_messages_id(said, response_schema='{"type":"array"}', answer_tokens=1024) == "47d02406ba86617ea7ff5bf5559a7a15"
    )


def test_the_hash_of_a_segment() -> None:
    assert compute_blueprint_hash([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5"
    assert (
        compute_blueprint_hash([PROMPT, "ff", "00"])
        == compute_blueprint_hash(["00", "ff", PROMPT])
        == "23e1295fcf4f8bab275fb953f6c4c8b9"
    )


def test_request_keys() -> None:
    assert request_key(PROMPT, VARIANT, 0, "base") == "3fb47df85f6c9f6fb0b2a7e2d9962e9c"
    assert request_keys([PROMPT, "ü"], VARIANT, 3, "2026-01-31") == [
        "84187aa9366ed281f19ce56db7723115",
        "fee352e9b9c5cd4d8b97b3271c2b98ff",
    ]


def test_requests_and_predictions_carry_the_same_keys() -> None:
    model = ModelSpec(name="mini", model="openai/gpt-4.1-mini")
    row = {
        "round": "S1",
        "segment": "country:kenya",
        "question_id": QUESTION,
        "options": OPTIONS,
        "context_level": "0",
        "condition": "distribution/attribute-label",
        "prompt_id": PROMPT,
        "blueprint_hash": "b",
        "system": "s",
        "user": "u",
    }
    prompts = pa.Table.from_pylist([row], schema=BLUEPRINTS)
    expected = [
        "3fb47df85f6c9f6fb0b2a7e2d9962e9c",
        "e980856eae80540aad9d46f26573d50c",
    ]
    assert [request.key for request in RequestList([CALLS.plan_calls(prompts, model, 2, "base").requests])] == expected
    assert CALLS.keys(prompts, model, 2, "base")["request_key"].to_pylist() == expected


@pytest.mark.parametrize(
    ("settings", "spelled"),
    [
        ({}, "[max_tokens=256,temperature=0]"),
        (
            {"temperature": 0.70, "top_p": 0.95, "seed": 7, "reasoning_effort": "low", "presence_penalty": -0.5},
            "[max_tokens=256,presence_penalty=-0.5,reasoning_effort=low,seed=7,temperature=0.7,top_p=0.95]",
        ),
        ({"frequency_penalty": 1.0, "temperature": 1e-5, "max_tokens": None}, "[frequency_penalty=1,temperature=1e-05]"),
        ({"temperature": None, "reasoning_effort": "high"}, "[max_tokens=256,reasoning_effort=high]"),
    ],
)
def test_model_variants_list_settings_in_alphabetical_order(settings: dict[str, Any], spelled: str) -> None:
    assert ModelSpec(name="m", model="openai/gpt-4.1-mini", **settings).variant == f"openai/gpt-4.1-mini{spelled}"


@pytest.mark.parametrize(
    ("options", "spelled"),
    [
        (BlueprintOptions(), "distribution/attribute-label"),
        (BlueprintOptions(("0", "5", "all")), "distribution/attribute-label"),
        (
            BlueprintOptions(task="shift", format="narrative", reasoning="cot", structured=True, option_order="reversed"),
            "shift/narrative+cot+structured+reversed",
        ),
        (
            BlueprintOptions(task="batch", batch_size=4, option_order="rotated-2", system="brief"),
            "batch=4/attribute-label+rotated-2+system=brief",
        ),
        (
            BlueprintOptions(task="synthetic-individuals", individuals=50, profile="population"),
            "synthetic-individuals=50/attribute-label+population",
        ),
        (
            BlueprintOptions(selection="random", seed=7, show_n=True, token_budget=8000, answer_reserve=60),
            "distribution/attribute-label+random+seed=7+show-n+tokens=8000+reserve=60",
        ),
        (
            BlueprintOptions(system="plain-words", system_text="Plain words, please.", format="distribution-context"),
            "distribution/distribution-context+system=plain-words~607393",
        ),
        (BlueprintOptions(seed=7), "distribution/attribute-label"),
    ],
)
def test_each_condition_has_one_spelling(options: BlueprintOptions, spelled: str) -> None:
    assert options.condition == spelled


def test_what_is_scored_against() -> None:
    """`truth_id`: of the options, the shares and the number of people, and of nothing else."""
    survey = survey_rows(
        {"options": OPTIONS, "observed": [0.5, 0.25, 0.25], "n": 40}, {"observed": [1 / 3, 1 / 3, 1 / 3], "n": 7}
    )
    predictions = pa.Table.from_pylist(
        [
            {**given, "round": "S1", "segment": "country:kenya", "call_status": "answered", "response": "[60, 30, 10]"}
            for given in ({"question_id": "q0"}, {"question_id": "q1"})
        ],
        schema=PREDICTIONS,
    )
    assert score_predictions(predictions, survey)["truth_id"].to_pylist() == [
        "89890e36e8d52b665b4b64fe74eff791",
        "88a077336a390f52081964e4f04fea91",
    ]


def test_clusters_of_questions() -> None:
    """The same question, in whatever round and with whatever mark at its end, is one cluster."""
    survey = survey_rows(
        {"question_text": "How often do you feel  ALONE?"},
        {"question_text": "how often do you feel alone:"},
        {"question_text": "Ｆｅｅｌ alone?", "options": ["Ja", "Nein", "Weiß nicht"]},
    )
    alone = "cd8800db26837660f6f4bef0ac2c0cd8"
    assert compute_reference_scores(survey, draws=2)["cluster"].to_pylist() == [
        alone,
        alone,
        "d991da3da22ddb88e436bd5b314fc89e",
    ]


def test_question_keys_and_partition_keys() -> None:
    assert make_question_key(" Why\tnot?! ", ["Straße", "ﬁne"]) == ("why not", "strasse", "fine")
    assert make_question_key("…", ["A"]) == ("...", "a")
    assert partition_key("GD4", "country:kenya") == "GD4/country:kenya"


def test_default_seeds() -> None:
    assert (SEED, CEILING_SEED, SHUFFLE_SEED, BlueprintOptions().seed) == (20_261_121, 20_261_121, 20_240_917, 20_260_101)


def test_the_generator_of_a_baseline_is_seeded_by_the_pair_and_the_draw() -> None:
    row = survey_rows({"options": OPTIONS}).to_pylist()[0]
    model = ModelSpec(name="d", model="baseline/dirichlet")
    drawn = [predict_distribution(model, row, draw, {}) for draw in range(2)]
    np.testing.assert_allclose(
        np.array(drawn, dtype=float),
        [[0.215214534, 0.437066195, 0.347719271], [0.047061418, 0.869432089, 0.083506493]],
        atol=1e-6,
    )


def test_the_generator_of_the_ceilings_is_seeded_by_the_question() -> None:
    made = compute_reference_scores(survey_rows({}), draws=5)["ceiling"].to_pylist()[0]
    assert made["js"] == pytest.approx(0.909874007, abs=1e-6)


def test_a_limited_model_is_asked_the_same_prompts_as_before() -> None:
    rows = [
        {"round": "S1", "segment": "all", "question_id": f"q{n}", "context_level": "0", "condition": "c", "prompt_id": f"p{n}"}
        for n in range(8)
    ]
    prompts = pa.Table.from_pylist(rows).append_column("reading", pa.nulls(8, BLUEPRINTS.field("reading").type))
    assert choose_limited_prompts(prompts, {"m": 3})["m"].to_pylist() == ["p2", "p6", "p1"]


def test_a_sample_asks_the_same_pairs_as_before() -> None:
    names = [("country", "kenya"), ("country", "india"), ("country", "peru"), ("gender", "female"), ("gender", "male")]
    rows = [
        {"battery": battery, "question_id": question, "attribute": attribute, "segment": f"{attribute}:{value}"}
        for battery, question in (("b", "q0"), ("b", "q1"), ("c", "q2"))
        for attribute, value in names
    ]
    order = draw_segment_order("S1", pd.DataFrame(rows).assign(put_off=False))
    assert order.reshape(3, 5).tolist() == [[2, 0, 1, 3, 4], [0, 3, 4, 1, 2], [3, 1, 2, 4, 0]]


@pytest.mark.parametrize(
    ("item", "how", "condition", "prompt", "stored_at"),
    [
        (BIRD, AskSettings(), "letters", "a4ea4d0d90cf8c081b10a1fec049104a", "a44ac4eb520c0cd8e463af99eac401ae"),
        (BIRD, AskSettings("parens"), "parens", "6d84bb88f8c4bf1fd1bacfbecdb6e406", "7971f2659bbe97f61aaee045b05fc48c"),
        (BIRD, AskSettings("cot"), "cot", "1a7bbde1ffcf83b81f852b3377dc5d12", "c1212b0457c10b2f78555c0f83be251c"),
        (
            BIRD,
            AskSettings(few_shot=2),
            "letters,2-shot",
            "e4dbaea5c26207663f0e47da7a3d6cf5",
            "3085a127ed8ca395df409d57aeede2f7",
        ),
        (
            BIRD,
            AskSettings("cot", 2, "turns"),
            "cot,2-shot-turns",
            "95ff8fdea819003ff74e1854d26940e0",
            "69e75712b7eec58170a28a8a2ad14d27",
        ),
        (
            BIRD,
            AskSettings(order="rotated-1"),
            "letters,rotated-1",
            "e38763795c6e510f2730e2233c6d1f51",
            "41618c92429a94fa4fa36e00cc177bc1",
        ),
        (
            BIRD,
            AskSettings("cot", 1, "message", "rotated-3"),
            "cot,1-shot,rotated-3",
            "e5b9368fcd04ead447ddf964c6f7d1b7",
            "a22ab95310315c3ea8589621787444c6",
        ),
        (ROWERS, AskSettings(), "plain", "12a342527edf99662bc2157ed67eccc9", "28de994ddb7ada6a7f48f1dc97272cc5"),
        (TWICE, AskSettings(), "plain", "4ffc6bde5e6e4ea61635eb5c95571161", "b406a09c6c5b32bc0e79868a68fb4887"),
        (KEEPER, AskSettings(k=1), "bm25,1-chunks", "b9891391a742091696ebbc2c1f9b8b71", "ae3f8ae031d00d9651f1a489bb1ad3e0"),
        (KEEPER, AskSettings(), "bm25,10-chunks", "410e01deef06791b31d16aab77868fff", "c4dd72280715511408b17d55982992cd"),
    ],
)
def test_what_is_asked_of_items_and_where_it_is_stored(
    item: QaItem, how: AskSettings, condition: str, prompt: str, stored_at: str
) -> None:
    documents = light_documents()
    prompts = (
        build_cited_prompts([item], documents, how, make_retriever("bm25", documents))
        if item is KEEPER
        else build_plain_prompts([item], BIRDS_SHOWN, how)
    ).qa_prompts
    (row,) = prompts.to_pylist()
    assert (row["condition"], row["prompt_id"]) == (condition, prompt)
    mini = ModelSpec(name="mini", model="openai/gpt-4.1-mini")
    first, second = (request.key for request in build_qa_requests(prompts, mini, 2, "base"))
    assert first == stored_at != second
    assert QA_CALLS.keys(prompts, mini, 2, "base")["request_key"].to_pylist() == [first, second]


def test_what_items_are_scored_against() -> None:
    assert [truth_id(item) for item in (BIRD, ROWERS, TWICE, KEEPER)] == [
        "9777f6ff8700fa2b698f3d0dd10097da",
        "6d033063a6b2877c4f0b1ac3291fe2a7",
        "c542730afb2d45f27193b904ad06706e",
        "f8d4002dea0d1057c5c7d322e57a05f6",
    ]
    assert QA_SPACE.key("mmlu", "sea_birds") == "mmlu/sea_birds"
    assert (QA_SPACE.name, QA_SPACE.first, QA_SPACE.second) == ("dataset_part", "suite", "part")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (None, ["b464cb60c3a17e2a8e7e04fc6090908a", "8c179cbcaae4c35975be17242841e3a0"]),
        ("second", ["a69b7b0e87f59822719610861da5b79a", "f7673723742de53a4414e95f917a7789"]),
    ],
)
def test_judgements_of_answers_and_where_they_are_stored(label: str | None, expected: list[str]) -> None:
    arbiter = Arbiter(ModelSpec(name="judge", model="openai/gpt-5.4-mini", max_tokens=1024))
    looks = iterate_arbitrations(ROWERS.text, "3 * 4 = 12\n#### 12", "It is 12.", arbiter, judge_snapshot(label))
    requests = [request for look in looks if (request := look.next([]))]
    assert [one.prompt_id for one in requests] == ["9d6fc135546311cc02d5f2b6741258da", "02f0ce67acc9e2474001dafc836ba3c8"]
    assert [one.key for one in requests] == expected
