"""Identities, letter by letter: when one moves, every answer that was paid for is bought again, or a history breaks in two.

A failure here is never mended by writing the new value down. Whole prompts are in `blueprint/golden/`, with their ids and the hashes
of their segments; the plain prompt id of the first release is in `test_identity.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assets.survey.predictor import limited_prompts
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.identity import blueprint_hash, digest, messages_id, partition_key, prompt_id, request_key, request_keys
from dtef_pipeline.statistics.resampling import SEED
from dtef_pipeline.survey.baselines.baselines import baseline_distribution
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.identity import question_key
from dtef_pipeline.survey.observe import SHUFFLE_SEED
from dtef_pipeline.survey.predictions import CALLS
from dtef_pipeline.survey.scoring.references import CEILING_SEED, reference_scores
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.tables import BLUEPRINTS, PREDICTIONS
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
    assert messages_id(said) == "0bf3465798b6ea1e92785df611dacba3"
    assert messages_id(said, response_schema='{"type":"array"}', answer_tokens=1024) == "47d02406ba86617ea7ff5bf5559a7a15"


def test_the_hash_of_a_segment() -> None:
    assert blueprint_hash([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5"
    assert blueprint_hash([PROMPT, "ff", "00"]) == blueprint_hash(["00", "ff", PROMPT]) == "23e1295fcf4f8bab275fb953f6c4c8b9"


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
    assert [request.key for request in CALLS.requests(prompts, model, 2, "base")] == expected
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
def test_model_variants_list_what_is_set_in_alphabetical_order(settings: dict[str, Any], spelled: str) -> None:
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
def test_conditions_are_spelled_in_one_way(options: BlueprintOptions, spelled: str) -> None:
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
    assert reference_scores(survey, draws=2)["cluster"].to_pylist() == [alone, alone, "d991da3da22ddb88e436bd5b314fc89e"]


def test_question_keys_and_partition_keys() -> None:
    assert question_key(" Why\tnot?! ", ["Straße", "ﬁne"]) == ("why not", "strasse", "fine")
    assert question_key("…", ["A"]) == ("...", "a")
    assert partition_key("GD4", "country:kenya") == "GD4/country:kenya"


def test_default_seeds() -> None:
    assert (SEED, CEILING_SEED, SHUFFLE_SEED, BlueprintOptions().seed) == (20_261_121, 20_261_121, 20_240_917, 20_260_101)


def test_the_generator_of_a_baseline_is_seeded_by_the_pair_and_the_draw() -> None:
    row = survey_rows({"options": OPTIONS}).to_pylist()[0]
    model = ModelSpec(name="d", model="baseline/dirichlet")
    drawn = [baseline_distribution(model, row, draw, {}) for draw in range(2)]
    np.testing.assert_allclose(
        np.array(drawn, dtype=float),
        [[0.215214534, 0.437066195, 0.347719271], [0.047061418, 0.869432089, 0.083506493]],
        atol=1e-6,
    )


def test_the_generator_of_the_ceilings_is_seeded_by_the_question() -> None:
    made = reference_scores(survey_rows({}), draws=5)["ceiling"].to_pylist()[0]
    assert made["js"] == pytest.approx(0.909874007, abs=1e-6)


def test_a_limited_model_is_asked_the_same_prompts_as_before() -> None:
    rows = [
        {"round": "S1", "segment": "all", "question_id": f"q{n}", "context_level": "0", "condition": "c", "prompt_id": f"p{n}"}
        for n in range(8)
    ]
    prompts = pa.Table.from_pylist(rows).append_column("reading", pa.nulls(8, BLUEPRINTS.field("reading").type))
    assert limited_prompts(prompts, {"m": 3})["m"].to_pylist() == ["p2", "p6", "p1"]
