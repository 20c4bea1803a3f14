"""Draws to cells, cells to variants, variants to models; the scored example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.scoring import (
    ScoringPolicy,
    compute_blueprint_scores,
    compute_coverage,
    compute_hybrid_at,
    compute_similarities_to_ideal,
    weigh_prompts,
)
from tests.dtef_pipeline.rubric import example
from tests.dtef_pipeline.rubric.scored_rows import RESPONSE_ROW, points_of

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


def test_a_prompt_without_a_weight_is_refused() -> None:
    with pytest.raises(ConfigError, match="prompts: weight of b, p: got nan; allowed: a row with a number above 0"):
        compute_blueprint_scores(planned({}), prompts_of(q=1), covered(), no_similarity())
    with pytest.raises(ConfigError, match="responses: two rows"):
        compute_blueprint_scores(planned({}, {}), prompts_of(p=1), covered(), no_similarity())
    with pytest.raises(ConfigError, match="prompts: two rows"):
        compute_blueprint_scores(planned({}), pd.concat([prompts_of(p=1)] * 2), covered(), no_similarity())


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
