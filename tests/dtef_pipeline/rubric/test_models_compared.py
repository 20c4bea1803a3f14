"""Models side by side: paired by prompt within a blueprint, blueprints counting alike, tested by whole clusters, adjusted over all pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.rubric.run_comparison import compare_over_blueprints
from tests.dtef_pipeline.rubric.score_tables import runs_of, scores_of

NAMES = [f"b{at:02d}" for at in range(40)]


def compared(*cells: dict[str, Any], weights: dict[str, float] | None = None, **options: Any) -> pd.DataFrame:
    table = scores_of(*cells, weights=weights)
    blueprints = options.pop("blueprints", NAMES)
    return compare_over_blueprints(table, ["s1", "s2"], blueprints, **options)


def lopsided(seed: int = 5) -> list[dict[str, Any]]:
    """Blueprints of very different sizes, prompts of different weights, responses missing, models with several variants."""
    rng = np.random.default_rng(seed)
    return [
        {
            "blueprint": f"b{at:02d}",
            "snapshot": "s1",
            "prompt": f"p{prompt}",
            "model": model,
            "temperature": temperature,
            "score": None if rng.random() < 0.2 else round(float(rng.random()), 3),
        }
        for at in range(7)
        for prompt in range(1 + 3 * at)
        for model in ("a", "b", "c")
        for temperature in ((0.0, 0.7) if model == "c" else (0.0,))
        if not (model == "b" and at == 3)
    ]


def naive(cells: list[dict[str, Any]], weights: dict[str, float]) -> dict[tuple[str, str], tuple[float, int, int]]:
    """By two models: the mean over blueprints of the weighted mean difference over shared prompts, and how many of both there are."""
    by: dict[tuple[str, str, str], list[float]] = {}
    for cell in cells:
        if cell["score"] is not None:
            by.setdefault((cell["model"], cell["blueprint"], cell["prompt"]), []).append(cell["score"])
    found = {}
    for one, other in combinations("abc", 2):
        means, prompts = [], 0
        for blueprint in sorted({cell["blueprint"] for cell in cells}):
            above = below = 0.0
            for prompt in {cell["prompt"] for cell in cells if cell["blueprint"] == blueprint}:
                mine, theirs = by.get((one, blueprint, prompt)), by.get((other, blueprint, prompt))
                if mine and theirs:
                    weight = weights.get(prompt, 1.0)
                    above += weight * (sum(mine) / len(mine) - sum(theirs) / len(theirs))
                    below += weight
                    prompts += 1
            if below:
                means.append(above / below)
        found[one, other] = sum(means) / len(means), len(means), prompts
    return found


def test_difference_is_that_of_the_plain_double_loop_on_lopsided_data() -> None:
    cells, weights = lopsided(), {"p0": 3.0, "p2": 0.5}
    wanted = naive(cells, weights)
    rows = compared(*cells, weights=weights)
    assert len(rows) == 3
    for row in rows.to_dict("records"):
        pair = row["model"], row["other_model"]
        sign = 1 if pair in wanted else -1
        difference, n_blueprints, n_prompts = wanted[pair if sign == 1 else pair[::-1]]
        assert row["difference"] == pytest.approx(sign * difference, abs=1e-12)
        assert row["difference"] == pytest.approx(row["score"] - row["other_score"], abs=1e-12)
        assert (row["n_clusters"], row["n_items"]) == (n_blueprints, n_prompts)
        assert row["difference"] >= 0


def test_of_one_blueprint_prompts_are_what_is_independent() -> None:
    cells = [
        {
            "blueprint": "b00",
            "snapshot": "s1",
            "prompt": f"p{at}",
            "model": model,
            "score": 0.3 + 0.01 * at + better * (1 + at % 2),
        }
        for at in range(8)
        for model, better in (("a", 0.1), ("b", 0.0))
    ]
    (row,) = compared(*cells, weights={"p0": 2.0}).to_dict("records")
    assert 0 < row["low"] < row["difference"] == pytest.approx((2 * 0.1 + 3 * 0.1 + 4 * 0.2) / 9)
    assert (row["n_clusters"], row["n_items"], row["verdict"]) == (8, 8, "better")
    assert row["score"] == pytest.approx(row["other_score"] + row["difference"])


def test_only_the_latest_run_counts_and_only_the_blueprints_that_are_named() -> None:
    earlier = [{**cell, "score": 0.0} for cell in runs_of("a", 0.9, 0.9)]
    later = [*runs_of("a", 0.9, 0.9, snapshot="s2"), *runs_of("b", 0.5, 0.7, snapshot="s2")]
    (row,) = compared(*earlier, *later).to_dict("records")
    assert row["difference"] == pytest.approx(0.3)
    (row,) = compared(*earlier, *later, blueprints=["b01"]).to_dict("records")
    assert row["difference"] == pytest.approx(0.2)
    assert compared(*earlier, *later, blueprints=["elsewhere"]).empty


def test_models_that_share_no_prompt_have_no_row() -> None:
    assert compared(*runs_of("a", 0.5, 0.6)).empty
    assert compared(*runs_of("a", 0.5), *runs_of("b", 0.5, first=1)).empty
