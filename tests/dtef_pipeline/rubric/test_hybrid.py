"""The hybrid score of coverage and similarity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.scoring import ScoringPolicy, compute_hybrid, compute_hybrid_at

NAN = float("nan")


def of(similarity: float, coverage: float, *, criteria: bool = True, ideal: bool = True, beta: float = 0.35) -> float:
    (value,) = compute_hybrid_at(*compute_hybrid([coverage], [similarity], [criteria], [ideal]), beta)
    return float(value)


def test_a_part_that_the_prompt_does_not_define_is_not_in_it() -> None:
    assert of(NAN, 0.6, ideal=False) == pytest.approx(0.6)
    assert of(0.9, 0.6, ideal=False) == pytest.approx(0.6)
    assert of(0.8, NAN, criteria=False) == pytest.approx(0.8)
    assert of(-0.3, NAN, criteria=False) == 0
    assert np.isnan(of(0.8, 0.6, criteria=False, ideal=False))


def test_a_defined_part_that_failed_leaves_no_score_at_any_beta() -> None:
    for similarity, coverage in ((NAN, 0.6), (0.8, NAN)):
        found = compute_hybrid([coverage], [similarity], [True], [True])
        assert np.isnan(
            [found.intercept[0], found.slope[0], of(similarity, coverage, beta=0.0), of(similarity, coverage, beta=1.0)]
        ).all()


def test_two_models_change_places_at_the_beta_by_hand() -> None:
    """A similar .95, covered .60; B similar .60, covered .78."""
    a, b = (0.60, 0.95 - 0.60), (0.78, 0.60 - 0.78)
    assert compute_hybrid_at([a[0], b[0]], [a[1], b[1]], 0.35) == pytest.approx([0.7225, 0.717])
    below, above = (compute_hybrid_at([a[0], b[0]], [a[1], b[1]], 0.3396226 + step) for step in (-1e-6, 1e-6))
    assert below[1] > below[0]
    assert above[0] > above[1]


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans())
def test_hybrid_is_the_formula_and_within_0_and_1(
    similarity: float, coverage: float, beta: float, criteria: bool, ideal: bool
) -> None:
    value = of(similarity, coverage, criteria=criteria, ideal=ideal, beta=beta)
    if criteria and ideal:
        assert value == pytest.approx(beta * max(0.0, similarity) + (1 - beta) * coverage, abs=1e-12)
    assert np.isnan(value) == (not criteria and not ideal)
    assert np.isnan(value) or -1e-12 <= value <= 1 + 1e-12


def test_a_beta_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy beta: got 1\.5"):
        compute_hybrid_at([0.5], [0.1], 1.5)


def test_every_choice_changes_the_hash_and_equal_choices_do_not() -> None:
    policies = [
        ScoringPolicy(),
        ScoringPolicy(beta=0.5),
        ScoringPolicy(or_paths="two_group"),
        ScoringPolicy(should_not_paths="max"),
        ScoringPolicy(embedder="openai/text-embedding-3-small"),
    ]
    assert len({policy.policy_hash for policy in policies}) == len(policies)
    assert ScoringPolicy(beta=1).policy_hash == ScoringPolicy(beta=1.0).policy_hash


def test_the_hash_of_the_usual_policy_never_changes() -> None:
    """Runs that were made under it would no longer be compared with later ones."""
    assert ScoringPolicy().policy_hash == "4fabf86319ac47906fe02ee685c46413"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"beta": 1.01}, r"policy beta: got 1\.01; allowed: a number from 0"),
        ({"beta": float("nan")}, "policy beta: got nan"),
        ({"beta": True}, "policy beta: got True"),
        ({"beta": "0.35"}, "policy beta: got '0.35'"),
        ({"or_paths": "best"}, "policy or_paths: got 'best'; allowed: document, two_group"),
        ({"should_not_paths": "min"}, "policy should_not_paths: got 'min'; allowed: worst, max"),
        ({"embedder": " "}, "policy embedder: got ' '; allowed: the name of an embedder"),
    ],
)
def test_a_policy_that_is_none_is_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScoringPolicy(**choice)
