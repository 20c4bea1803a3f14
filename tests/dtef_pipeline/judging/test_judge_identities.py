"""Identities of judging, letter by letter: when one moves, every judgement that was paid for is bought again.

A failure here is never mended by writing the new value down, unless the prompts were changed on purpose.
"""

from __future__ import annotations

import pytest

from dtef_pipeline.judging.consensus import FIVE_CLASSES, TEN_CLASSES
from dtef_pipeline.judging.judgement import build_first_request, build_next_request
from dtef_pipeline.judging.judges import JudgeConfig, default_judges, judge_hash
from dtef_pipeline.judging.prompts import hash_template, list_order
from tests.dtef_pipeline.judging.cases import CASE, CRITERIA, MINI, MODELS, replied


@pytest.mark.parametrize(
    ("approach", "prompt", "key", "corrected", "longer"),
    [
        (
            "standard",
            "0c45af9fe63c10c480f15295aa08ef14",
            "01981cecc325f868f8beda221adceb6c",
            "2bb6cd49cf5d5ce3bb2b5294af6c288a",
            "30c55b8d19c0b2343f7210af4fe6e99b",
        ),
        (
            "prompt-aware",
            "685bf951902d9f09466a694a1b834602",
            "f543fe554ac3c1a4711125958fc14b29",
            "14583cb7e5e66f54c6c5a3fb45ab9f31",
            "64729916b05646de5e3eac4cefaa5581",
        ),
        (
            "holistic",
            "d50487c126fd4ab1b0a0b5d174fbba4f",
            "b3ae93d943612e44321d7af9489a0124",
            "cb95a3f20e1c86dbebd72cee50e37e1d",
            "5a434bd7851c3bb7b53454c6246c247e",
        ),
    ],
)
def test_requests_of_judges(approach: str, prompt: str, key: str, corrected: str, longer: str) -> None:
    request = build_first_request(CASE, JudgeConfig(approach, MINI), 0, "base")
    after = [build_next_request(request, [replied(request, "Good.", finish_reason=why)]) for why in ("stop", "length")]
    assert (request.prompt_id, request.key) == (prompt, key)
    assert [again.key for again in after if again] == [corrected, longer]


def test_hashes_of_judges() -> None:
    judges = [(judge.approach, judge.model.variant) for judge in default_judges(MODELS)]
    assert [judge_hash(judges, scale) for scale in (FIVE_CLASSES, TEN_CLASSES)] == [
        "1c0c4106435e9691fd02a10acaeca636",
        "cf2f45385704f7bdab44f7791a34761d",
    ]
    assert [hash_template(approach) for approach in ("standard", "prompt-aware", "holistic")] == [
        "e1af9828258b02ab4c9475d3a8d0691d",
        "f0cc403cc839596e957241c81e0939c8",
        "b4108fbac5f3f123cb62984a0d292a6f",
    ]


def test_the_order_of_criteria() -> None:
    assert [list_order(criterion, CRITERIA) for criterion in CRITERIA] == [(2, 0, 1), (1, 2, 0), (1, 2, 0)]
