"""Shares of variance are those that were put in, and those of the textbook's sums of squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.rubric.validity import NO_REPEATS, ONE_JUDGE, compute_variance_shares, estimate_components


def nested(
    rng: np.random.Generator, answers: float, judges: float, repeats: float, items: int = 3000, lopsided: bool = True
) -> pd.DataFrame:
    """Three judges of three draws each; lopsided: a third of all scores missing."""
    item, judge, draw = (part.ravel() for part in np.meshgrid(np.arange(items), np.arange(3), np.arange(3), indexing="ij"))
    level = (
        rng.normal(0, answers**0.5, items)[item]
        + rng.normal(0, judges**0.5, (items, 3))[item, judge]
        + rng.normal(0, repeats**0.5, len(item))
    )
    frame = pd.DataFrame({"prompt": item // 10, "position": item % 10, "judge": judge, "judge_draw": draw, "score": level})
    constant = {
        "blueprint": "b",
        "snapshot": "s",
        "model": "m",
        "model_variant": "m",
        "temperature": 0.0,
        "system_index": 0,
        "draw": 0,
    }
    frame = frame.assign(**constant, block="should", path=None)
    return frame[rng.random(len(frame)) < 0.67] if lopsided else frame


def test_shares_that_were_put_in_come_out_of_lopsided_data() -> None:
    found = compute_variance_shares(nested(np.random.default_rng(1), 0.5, 0.3, 0.2)).iloc[0]
    assert found[["answers", "judges", "repeats"]].tolist() == pytest.approx([0.5, 0.3, 0.2], abs=0.02)
    assert found["variance"] == pytest.approx(1, abs=0.03)
    assert found["reason"] == ""


def test_balanced_data_have_the_components_of_the_mean_squares() -> None:
    rows = nested(np.random.default_rng(2), 1, 0.5, 0.5, items=40, lopsided=False)
    y = rows["score"].to_numpy().reshape(40, 3, 3)
    within = ((y - y.mean(axis=2, keepdims=True)) ** 2).sum() / (40 * 3 * 2)
    of_judges = 3 * ((y.mean(axis=2) - y.mean(axis=(1, 2))[:, None]) ** 2).sum() / (40 * 2)
    of_items = 9 * ((y.mean(axis=(1, 2)) - y.mean()) ** 2).sum() / 39
    item = np.repeat(np.arange(40), 9)
    cell = np.repeat(np.arange(120), 3)
    found = estimate_components(rows["score"].to_numpy(), item, cell)
    assert found[:3] == pytest.approx((within, (of_judges - within) / 3, (of_items - of_judges) / 9))


def test_by_hand() -> None:
    # Two items of two judges of two draws, 0 and 1: the mean square of items is 2, over four scores each 1/2.
    found = estimate_components(np.array([0, 0, 0, 0, 1, 1, 1, 1.0]), np.repeat([0, 1], 4), np.repeat(np.arange(4), 2))
    assert found[:3] == pytest.approx((0, 0, 0.5))


def test_what_cannot_be_distinguished_is_null_and_stated() -> None:
    rows = nested(np.random.default_rng(1), 0.5, 0.3, 0.2, items=200, lopsided=False)
    once = compute_variance_shares(rows[rows["judge_draw"] == 0]).iloc[0]
    assert np.isnan(once["repeats"])
    assert once["reason"] == NO_REPEATS
    assert once["answers"] + once["judges"] == pytest.approx(1)
    alone = compute_variance_shares(rows[rows["judge"] == 0]).iloc[0]
    assert np.isnan(alone["judges"])
    assert alone["reason"] == ONE_JUDGE
    nothing = compute_variance_shares(rows.assign(score=np.nan)).iloc[0]
    assert nothing["reason"] == "no scores"


def test_groups_are_as_if_each_were_alone_and_neither_order_nor_a_constant_matters() -> None:
    rows = nested(np.random.default_rng(3), 0.5, 0.3, 0.2, items=300)
    rows = rows.assign(blueprint=np.where(rows["prompt"] < 10, "x", "y"))
    found = compute_variance_shares(
        rows.assign(score=rows["score"] + 5).sample(frac=1, random_state=2), ["blueprint"]
    ).set_index("blueprint")
    alone = compute_variance_shares(rows[rows["blueprint"] == "x"]).iloc[0]
    columns = ["answers", "judges", "repeats", "variance"]
    assert found.loc["x", columns].tolist() == pytest.approx(alone[columns].tolist())
