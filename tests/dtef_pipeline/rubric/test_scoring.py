"""Draws to cells, cells to variants, variants to models; the scored example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.levels import display_id, group_rows
from dtef_pipeline.rubric.scoring import (
    ScoringPolicy,
    compute_blueprint_scores,
    compute_coverage,
    compute_hybrid,
    compute_hybrid_at,
    compute_similarities_to_ideal,
    weigh_prompts,
)
from dtef_pipeline.rubric.settings import RubricSettings
from tests.dtef_pipeline.rubric import example
from tests.dtef_pipeline.rubric.scored_rows import RESPONSE_ROW, points_of, required

KEYS = list(RESPONSE_ROW)


def planned(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**RESPONSE_ROW, "reason": None, **row} for row in rows], columns=[*KEYS, "reason"])


def prompts_of(**weights: float) -> pd.DataFrame:
    rows = [
        {"blueprint": "b", "prompt": prompt, "weight": weight, "n_criteria": 1, "has_ideal": False}
        for prompt, weight in weights.items()
    ]
    return pd.DataFrame(rows, columns=["blueprint", "prompt", "weight", "n_criteria", "has_ideal"])


def covered(*rows: dict[str, Any]) -> pd.DataFrame:
    """Coverage by one point each, at `score`."""
    points = [points_of({"reason": None, **row}) for row in rows]
    return compute_coverage(pd.concat(points) if points else points_of())


def no_similarity() -> pd.DataFrame:
    return pd.DataFrame(columns=[*KEYS, "similarity"])


def level(found: pd.DataFrame, name: str) -> list[dict[str, Any]]:
    return found[found["level"] == name].to_dict("records")


def test_draws_are_averaged_before_prompts_and_variants_count_the_same() -> None:
    rows = [
        {"prompt": "p", "score": 0.2},
        {"prompt": "p", "draw": 1, "score": 0.4},
        {"prompt": "q", "score": 0.9},
        {"prompt": "p", "temperature": 1.0, "model_variant": "m[temperature=1]", "score": 1.0},
    ]
    asked = [{name: value for name, value in row.items() if name != "score"} for row in rows]
    found = compute_blueprint_scores(planned(*asked), prompts_of(p=1, q=1), covered(*rows), no_similarity())
    assert [cell["hybrid"] for cell in level(found, "cell")] == pytest.approx([0.3, 1.0, 0.9])
    assert [variant["hybrid"] for variant in level(found, "variant")] == pytest.approx([0.6, 1.0])
    (model,) = level(found, "model")
    assert (model["hybrid"], model["n_planned"], model["n_responses"]) == (pytest.approx(0.8), 2, 4)


def test_what_is_missing_is_left_out_and_reported_at_every_level() -> None:
    asked = [
        {"prompt": "p"},
        {"prompt": "q", "reason": "empty"},
        {"prompt": "r"},
        {"prompt": "r", "draw": 1, "reason": "budget"},
    ]
    rows = [{"prompt": "p", "score": None, "reason": "unreadable"}, {"prompt": "r", "score": 0.6}]
    found = compute_blueprint_scores(planned(*asked), prompts_of(p=1, q=1, r=1), covered(*rows), no_similarity())
    p, q, r = level(found, "cell")
    assert (p["n_planned"], p["n_unscored"], p["reasons"]) == (1, 1, (("no criterion could be scored", 1),))
    assert (q["reasons"], np.isnan(q["hybrid"])) == ((("empty", 1),), True)
    assert (q["n_planned"], q["n_scored"], q["n_unscored"]) == (1, 0, 1)
    assert (r["hybrid"], r["n_responses"], r["n_responses_scored"], r["reasons"]) == (0.6, 2, 1, (("budget", 1),))
    (variant,), (model,) = level(found, "variant"), level(found, "model")
    assert (variant["hybrid"], variant["n_planned"], variant["n_scored"], variant["n_partial"]) == (0.6, 3, 1, 1)
    assert variant["reasons"] == model["reasons"] == (("budget", 1), ("empty", 1), ("no criterion could be scored", 1))
    assert (model["n_planned"], model["n_scored"], model["n_partial"], model["n_unscored"]) == (1, 1, 1, 0)


def test_a_prompt_is_scored_by_what_it_defines() -> None:
    prompts = pd.DataFrame({"blueprint": "b", "prompt": list("pqr"), "weight": 1.0, "ideal": ["yes", None, None]})
    criteria = pd.DataFrame({"blueprint": "b", "prompt": ["q", "q"]})
    parts = weigh_prompts(prompts, criteria)
    assert parts["n_criteria"].tolist() == [0, 2, 0]
    asked = planned(*({"prompt": prompt} for prompt in "pqr"))
    similar = asked.assign(similarity=[0.8, np.nan, np.nan])
    found = compute_blueprint_scores(asked, parts, covered({"prompt": "q", "score": 0.5}), similar)
    p, q, r = level(found, "cell")
    assert [cell["hybrid"] for cell in (p, q)] == [0.8, 0.5]
    assert r["reasons"] == (("neither criteria nor an ideal answer", 1),)
    assert (q["n_planned"], q["n_scored"], q["n_unscored"]) == (2, 1, 1)
    (variant,) = level(found, "variant")
    assert variant["hybrid"] == pytest.approx(0.65)


def test_a_failed_similarity_leaves_the_coverage_and_no_hybrid_score() -> None:
    parts = prompts_of(p=1).assign(has_ideal=True)
    found = compute_blueprint_scores(planned({}), parts, covered({"score": 0.5}), no_similarity())
    for row in found.to_dict("records"):
        assert (row["coverage"], np.isnan(row["hybrid"]), np.isnan(row["intercept"])) == (0.5, True, True)
    assert level(found, "cell")[0]["reasons"] == (("no similarity to the ideal answer", 1),)


def test_nothing_planned_has_no_scores() -> None:
    found = compute_blueprint_scores(planned(), prompts_of(), covered(), no_similarity())
    assert len(found) == 0
    assert {"level", "hybrid", "n_planned", "reasons"} <= set(found)


def test_two_rows_of_one_key_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="responses: two rows"):
        compute_blueprint_scores(planned({}, {}), prompts_of(p=1), covered(), no_similarity())
    with pytest.raises(ConfigError, match="prompts: two rows"):
        compute_blueprint_scores(planned({}), pd.concat([prompts_of(p=1)] * 2), covered(), no_similarity())
    with pytest.raises(ConfigError, match=r"points: two rows with .*'position': 0"):
        compute_coverage(points_of({"score": 1.0}, {"score": 0.5, "position": 0}))


@pytest.fixture(scope="module")
def scored_example() -> tuple[pd.DataFrame, ...]:
    """Responses, prompts, points, and vectors of responses and of ideals."""
    tables = example.example()
    given = example.as_ours(tables["responses"])
    given["reason"] = given["status"].where(given["status"] != "ok")
    vectors = tables["embeddings"]
    answers = example.as_ours(vectors[vectors["model"].notna()])
    ideals = vectors.loc[vectors["model"].isna(), ["blueprint", "prompt", "vector"]]
    return given, example.prompts(), example.points(), answers, ideals


def scored_from(given: tuple[pd.DataFrame, ...]) -> pd.DataFrame:
    responses, prompts, points, answers, ideals = given
    return compute_blueprint_scores(
        responses, prompts, compute_coverage(points), compute_similarities_to_ideal(answers, ideals)
    )


@pytest.mark.parametrize(("name", "rows", "keys"), [("cell", 168, 5), ("variant", 30, 4), ("model", 24, 2)])
def test_every_score_of_the_example_is_found_again(
    scored_example: tuple[pd.DataFrame, ...], name: str, rows: int, keys: int
) -> None:
    found = scored_from(scored_example).rename(columns={"system_index": "system"})
    expected = example.example()[f"{name}s"]
    names = list(expected.columns[:keys])
    own = found[found["level"] == name].astype({"system": "float64"}) if keys > 2 else found[found["level"] == name]
    both = expected.astype({"system": "float64"} if keys > 2 else {}).merge(own, "left", names, suffixes=("_expected", ""))
    assert len(both) == rows
    for number in ("coverage", "similarity", "hybrid"):
        values = (both[side].astype(float).to_numpy() for side in (number, f"{number}_expected"))
        np.testing.assert_allclose(*values, atol=5e-12, rtol=0)
    if name != "model":
        counts = {"cell": "n_points", "variant": "n_prompts"}[name]
        assert both["n_planned"].tolist() == both[counts].tolist()
        assert both["n_scored"].tolist() == both["n_scored_expected"].tolist()
    else:
        assert both["n_planned"].tolist() == both["n_variants"].tolist()


def test_tables_in_another_row_order_give_equal_bits(scored_example: tuple[pd.DataFrame, ...]) -> None:
    rng = np.random.default_rng(5)
    shuffled = tuple(table.iloc[rng.permutation(len(table))] for table in scored_example)
    pd.testing.assert_frame_equal(scored_from(shuffled), scored_from(scored_example), check_exact=True)


def test_every_level_is_linear_in_beta(scored_example: tuple[pd.DataFrame, ...]) -> None:
    """What the slider shows is what a board at that beta says."""
    responses, prompts, points, answers, ideals = scored_example
    found = scored_from(scored_example)
    for beta in (0.0, 0.7, 1.0):
        policy = ScoringPolicy(beta=beta)
        again = compute_blueprint_scores(
            responses, prompts, compute_coverage(points, policy), compute_similarities_to_ideal(answers, ideals), policy
        )
        pd.testing.assert_frame_equal(
            found.assign(hybrid=compute_hybrid_at(found["intercept"], found["slope"], beta)), again, check_exact=True
        )
        cells = again[again["level"] == "cell"]
        by_hand = beta * cells["similarity"].clip(lower=0) + (1 - beta) * cells["coverage"]
        both = cells["slope"] != 0
        np.testing.assert_allclose(cells["hybrid"][both].astype(float), by_hand[both].astype(float), atol=1e-12)


def naive(points: pd.DataFrame, policy: ScoringPolicy) -> float:
    """The document's formula, point by point."""
    numbers, weights, alternatives = [], [], []
    scored = [row for row in points.to_dict("records") if not pd.isna(row["score"])]
    for row in scored:
        if pd.isna(row["path"]):
            numbers.append(row["score"])
            weights.append(row["weight"])
    for block in ("should", "should_not"):
        means = []
        for number in sorted({row["path"] for row in scored if row["block"] == block and not pd.isna(row["path"])}):
            own = [row for row in scored if row["block"] == block and row["path"] == number]
            means.append(sum(r["score"] * r["weight"] for r in own) / sum(r["weight"] for r in own))
        if means:
            worst = block == "should_not" and policy.should_not_paths == "worst"
            alternatives.append(min(means) if worst else max(means))
    if policy.or_paths == "document":
        numbers, weights = numbers + alternatives, weights + [1.0] * len(alternatives)
        return sum(s * w for s, w in zip(numbers, weights, strict=True)) / sum(weights) if weights else float("nan")
    groups = [sum(s * w for s, w in zip(numbers, weights, strict=True)) / sum(weights)] if weights else []
    groups += [sum(alternatives) / len(alternatives)] if alternatives else []
    return sum(groups) / len(groups) if groups else float("nan")


def test_unscored_points_are_counted_and_never_0() -> None:
    points = points_of(required(None), required(0.5, partial=True), required(1.0), required(None), required(None))
    (row,) = compute_coverage(points).to_dict("records")
    assert (row["n_planned"], row["n_scored"], row["n_partial"], row["n_unscored"]) == (5, 2, 1, 3)
    assert row["coverage"] == pytest.approx(0.75)
    found = compute_coverage(points_of())
    assert len(found) == 0
    assert {"coverage", "n_planned", "n_unscored", "draw"} <= set(found)


SCORE = st.one_of(st.none(), st.floats(0, 1))
POINT = st.fixed_dictionaries(
    {
        "prompt": st.sampled_from(["p", "q"]),
        "block": st.sampled_from(["should", "should_not"]),
        "path": st.one_of(st.none(), st.integers(0, 2)),
        "score": SCORE,
        "weight": st.floats(0.1, 10),
    }
)


@given(
    st.lists(POINT, min_size=1, max_size=25),
    st.sampled_from(["document", "two_group"]),
    st.sampled_from(["worst", "max"]),
    st.randoms(use_true_random=False),
)
def test_coverage_is_the_naive_definition_in_any_row_order(
    rows: list[dict[str, Any]], paths: str, worst: str, random: Any
) -> None:
    policy = ScoringPolicy(or_paths=paths, should_not_paths=worst)
    points = points_of(*rows)
    found = compute_coverage(points, policy)
    expected = [naive(own, policy) for _, own in points.groupby("prompt")]
    np.testing.assert_allclose(found["coverage"].to_numpy(), expected, rtol=1e-9, atol=1e-12)
    order = list(range(len(points)))
    random.shuffle(order)
    pd.testing.assert_frame_equal(compute_coverage(points.iloc[order], policy), found, check_exact=True)


NAN = float("nan")


def of(similarity: float, coverage: float, *, criteria: bool = True, ideal: bool = True, beta: float = 0.35) -> float:
    (value,) = compute_hybrid_at(*compute_hybrid([coverage], [similarity], [criteria], [ideal]), beta)
    return float(value)


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
    similar = max(0.0, similarity)
    cases = {(True, True): beta * similar + (1 - beta) * coverage, (True, False): coverage, (False, True): similar}
    assert value == pytest.approx(cases.get((criteria, ideal), float("nan")), abs=1e-12, nan_ok=True)
    assert np.isnan(value) or -1e-12 <= value <= 1 + 1e-12


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
    ("temperature", "place", "systems", "expected"),
    [
        (0.0, 0, 1, "openai:gpt-4o[temp:0]"),
        (0.5, 0, 1, "openai:gpt-4o[temp:0.5]"),
        (0.5, 1, 2, "openai:gpt-4o[temp:0.5][sp_idx:1]"),
        (0.5, 0, 2, "openai:gpt-4o[temp:0.5][sp_idx:0]"),
        (None, 0, 1, "openai:gpt-4o"),
    ],
)
def test_display_id_by_hand(temperature: float | None, place: int, systems: int, expected: str) -> None:
    assert display_id("openai:gpt-4o", temperature, place, systems) == expected


def test_groups_stand_in_the_order_of_their_keys_and_a_null_is_one() -> None:
    frame = pd.DataFrame({"a": ["y", "x", "y", "x"], "b": [None, 2.0, 1.0, 2.0]})
    found = group_rows(frame, ("a", "b"))
    assert found.code.tolist() == [2, 0, 1, 0]
    assert found.keys["a"].tolist() == ["x", "y", "y"]


@pytest.mark.parametrize(
    "choice",
    [{"beta": 1.01}, {"beta": float("nan")}, {"or_paths": "best"}, {"should_not_paths": "min"}, {"embedder": ""}, {"scale": 7}],
)
def test_settings_of_scoring_that_are_none_are_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(choice))):
        RubricSettings(**choice)
