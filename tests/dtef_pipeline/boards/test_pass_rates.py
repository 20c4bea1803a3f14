"""pass@k of models: shared examples, a plain loop over items, and items with too few draws."""

from __future__ import annotations

import json
from itertools import combinations
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.boards.item_means import compute_pass_rates
from tests.conftest import SHARED
from tests.dtef_pipeline.qa.vectors import cases


def rates(outcomes: dict[str, list[float | None]], *ks: int) -> list[dict[str, Any]]:
    rows = [("a", item, score) for item, scores in outcomes.items() for score in scores]
    columns = dict(zip(("model", "item_id", "score"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({**columns, "score": pa.array(columns["score"], pa.float64())})
    return list(compute_pass_rates(table, ["model"], ks).to_pylist())


def test_shared_rates_hold() -> None:
    for case in cases("benchmarks", "pass_at_k"):
        n, c, k = (case["in"][name] for name in "nck")
        (found,) = rates({"i": [1.0] * c + [0.0] * (n - c)}, k)
        assert found["pass_at_k"] == (None if case["out"] is None else pytest.approx(case["out"], abs=case["tol"]))


def test_the_mean_over_items_is_that_of_all_choices_of_k_draws() -> None:
    outcomes: dict[str, list[float | None]] = {
        "a": [1, 0, 0, 0, 0],
        "b": [0, 0, 0],
        "c": [1, 1, 0, 1],
        "d": [1, 0, None, 0],
        "e": [0, 1, 0, 0, 1, 0],
        "few": [1, None],
    }
    for found, k in zip(rates(outcomes, 1, 3), (1, 3), strict=True):
        scored = [[s for s in scores if s is not None] for scores in outcomes.values()]
        enough = [scores for scores in scored if len(scores) >= k]
        wanted = fmean(fmean(any(chosen) for chosen in combinations(scores, k)) for scores in enough)
        assert found["pass_at_k"] == pytest.approx(wanted)
        assert (found["k"], found["n_items"], found["n_too_few"]) == (k, len(enough), len(scored) - len(enough))
        assert 0 <= found["pass_low"] <= wanted <= found["pass_high"] <= 1
    assert found["note"] == "1 item with fewer than 3 scored draws left out"


def test_no_item_with_draws_enough_has_no_rate() -> None:
    (found,) = rates({"a": [1.0], "b": [0.0]}, 5)
    assert (found["pass_at_k"], found["n_items"], found["n_too_few"]) == (None, 0, 2)
    assert found["note"] == "no item has 5 scored draws"


def test_pass_at_1_of_one_draw_has_the_interval_of_wilson() -> None:
    (found,) = rates({f"i{at}": [float(at < 9)] for at in range(10)}, 1)
    assert (found["pass_low"], found["pass_high"]) == pytest.approx((0.5958499732, 0.9821237869))


def test_each_model_has_its_rates_in_the_order_of_k() -> None:
    table = pa.table({"model": ["b", "b", "a", "a"], "item_id": ["i", "i", "i", "i"], "score": [1.0, 0.0, 0.0, 0.0]})
    found = compute_pass_rates(table, ["model"], [1, 2])
    assert found.select(["model", "k", "pass_at_k"]).to_pylist() == [
        {"model": "b", "k": 1, "pass_at_k": 0.5},
        {"model": "b", "k": 2, "pass_at_k": 1.0},
        {"model": "a", "k": 1, "pass_at_k": 0.0},
        {"model": "a", "k": 2, "pass_at_k": 0.0},
    ]


def test_the_published_samples_of_codegen_have_their_known_rates() -> None:
    path = SHARED / "benchmarks" / "humaneval" / "outputs" / "codegen-16b.jsonl"
    if not path.is_file():
        pytest.skip(f"the published samples are not at {path}")
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    found = rates({row["task_id"]: [float(one) for one in row["passed"]] for row in rows}, 1, 10)
    assert [row["pass_at_k"] for row in found] == pytest.approx([0.206667, 0.481324], abs=1e-6)
    assert [row["n_items"] for row in found] == [60, 60]
    assert all(row["pass_low"] < row["pass_at_k"] < row["pass_high"] for row in found)
