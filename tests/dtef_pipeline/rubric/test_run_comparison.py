"""Two runs of one blueprint compared model by model, models side by side over blueprints, and runs that were not made alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dtef_pipeline.rubric.board import (
    PROMPTS_THAT_MOVED,
    RUNS_COMPARED,
    compare_over_blueprints,
    compare_runs,
    describe_unlike_runs,
    find_moved_prompts,
    has_regression,
)
from tests.dtef_pipeline.rubric.scored_rows import runs_of, scores_of


def run_of(values: dict[str, list[float | None]], snapshot: str = "s1", **rest: Any) -> list[dict[str, Any]]:
    """Cells of a run: of each model a score per prompt."""
    return [
        {"blueprint": "b", "snapshot": snapshot, "prompt": f"p{at}", "model": model, "score": score, **rest}
        for model, own in values.items()
        for at, score in enumerate(own)
    ]


def compared(
    before: dict[str, Any], after: dict[str, Any], weights: dict[str, float] | None = None
) -> dict[str, dict[str, Any]]:
    tables = scores_of(*run_of(before), weights=weights), scores_of(*run_of(after, "s2"), weights=weights)
    return {row["model"]: row for row in compare_runs(*tables).to_dict("records")}


RNG = np.random.default_rng(7)
BASE = RNG.uniform(0.3, 0.7, size=20).tolist()


def moved(by: float, spread: float = 0.03) -> list[float]:
    return [value + by + float(RNG.normal(0, spread)) for value in BASE]


def test_a_fall_is_a_regression_and_a_rise_an_improvement() -> None:
    found = compared(dict.fromkeys("abc", BASE), {"a": moved(-0.1), "b": moved(0.1), "c": moved(0.0, 0.001)})
    assert [found[model]["verdict"] for model in "abc"] == ["regression", "improvement", "equivalent"]
    assert found["a"]["difference"] == pytest.approx(found["a"]["score"] - found["a"]["other_score"])
    assert found["a"]["low"] < found["a"]["difference"] < found["a"]["high"] < 0
    assert has_regression(pd.DataFrame(found.values()))
    assert not has_regression(pd.DataFrame([found["b"], found["c"]]))


def test_p_is_students_over_prompts_and_holm_multiplies_by_models() -> None:
    first, second = ([float(x) for x in RNG.uniform(0, 1, size=6)] for _ in range(2))
    found = compared({"a": first, "b": first}, {"a": second, "b": second})
    expected = stats.ttest_rel(second, first)
    assert found["a"]["p"] == pytest.approx(expected.pvalue)
    assert found["a"]["p_adjusted"] == pytest.approx(min(1, 2 * expected.pvalue))
    assert (found["a"]["low"], found["a"]["high"]) == pytest.approx(tuple(expected.confidence_interval()))


def test_the_difference_is_that_of_the_scores_by_weight_over_what_both_runs_have() -> None:
    before, after = [0.2, 0.4, 0.6, None, 0.9], [0.3, 0.4, None, 0.8, 0.5]
    found = compared({"a": before}, {"a": after}, {"p0": 3.0})["a"]
    assert found["difference"] == pytest.approx((3 * 0.1 + 0.0 - 0.4) / 5)
    assert (found["n_prompts"], found["n_pairs"]) == (3, 3)
    assert found["note"] == "no interval and no test: 3 prompts, at least 5 are needed"
    assert found["verdict"] == "undecided"


def test_variants_of_a_prompt_are_one_cluster() -> None:
    before, after = dict.fromkeys("a", BASE), {"a": moved(-0.02)}
    once = compared(before, after)["a"]
    doubled = [
        scores_of(*(cell for t in (0.0, 1.0) for cell in run_of(values, snapshot, temperature=t)))
        for values, snapshot in ((before, "s1"), (after, "s2"))
    ]
    (twice,) = compare_runs(*doubled).to_dict("records")
    assert (twice["n_prompts"], twice["n_pairs"]) == (20, 40)
    for name in ("difference", "low", "high", "p"):
        assert twice[name] == pytest.approx(once[name])


def test_a_run_compared_with_itself_is_equivalent_whatever_the_order_of_rows() -> None:
    cells = run_of({"a": BASE, "b": moved(-0.2)})
    tables = scores_of(*cells), scores_of(*({**cell, "snapshot": "s2"} for cell in cells))
    found = compare_runs(*tables)
    assert found["verdict"].tolist() == ["equivalent", "equivalent"]
    assert found["difference"].tolist() == [0, 0]
    moved_run = scores_of(*run_of({"a": moved(0.05), "b": moved(-0.3)}, "s2"))
    first = compare_runs(tables[0], moved_run)
    again = compare_runs(tables[0].iloc[::-1], moved_run.iloc[::-1])
    pd.testing.assert_frame_equal(again, first, check_exact=True)


def test_nothing_in_common_has_no_rows() -> None:
    one = scores_of(*run_of({"a": BASE}))
    for other in (scores_of(), scores_of(*run_of({"b": BASE}, "s2")), scores_of(*run_of({"a": [None] * 20}, "s2"))):
        found = compare_runs(one, other)
        assert (len(found), list(found.columns)) == (0, list(RUNS_COMPARED))
        assert not has_regression(found)


def test_prompts_are_sorted_by_how_far_their_means_moved_and_name_the_model_that_moved_most() -> None:
    before = scores_of(*run_of({"a": [0.5, 0.5, 0.5, None], "b": [0.5, 0.6, 0.7, 0.8]}))
    after = scores_of(*run_of({"a": [0.9, 0.4, 0.5, 0.5], "b": [0.1, 0.4, 0.8, 0.8]}, "s2"))
    found = find_moved_prompts(before, after).to_dict("records")
    assert [row["prompt"] for row in found] == ["p1", "p2", "p0", "p3"]
    assert [row["difference"] for row in found] == pytest.approx([-0.15, 0.05, 0.0, 0.0])
    assert [(row["moved_model"], row["n_pairs"]) for row in found] == [("b", 2), ("b", 2), ("b", 2), ("b", 1)]
    assert found[0]["model_difference"] == pytest.approx(-0.2)
    assert found[0]["score"] - found[0]["other_score"] == pytest.approx(-0.15)
    assert list(find_moved_prompts(before, after)) == list(PROMPTS_THAT_MOVED)
    assert not len(find_moved_prompts(before, scores_of(*run_of({"c": [0.5]}, "s2"))))


A, B = "standard(a)", "standard(b)"


def runs(*rows: tuple[Sequence[str], str], policy: str = "beta=0.35") -> pd.DataFrame:
    return pd.DataFrame([{"judges": list(judges), "judge_hash": by, "policy": policy} for judges, by in rows])


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        (
            [([A], "five"), ([f"{A}[scale:10]"], "ten"), ([A], "five")],
            ["on different scales", "5 classes (2 blueprints); 10 classes"],
        ),
        (
            [([A], "a"), ([A, B], "ab"), ([A], "a"), ([A, "no own judge"], "own")],
            [
                "judges: standard(a) (2 blueprints); standard(a), standard(b) (1 blueprint)",
                "standard(a), no own judge (1 blueprint)",
            ],
        ),
        ([([A], "1234567890"), ([A], "abcdefghij")], ["standard(a) with judge_hash 12345678 (1 blueprint)"]),
        ([([A], "a"), ([], "none"), ([A], "a")], []),
        ([([], "none"), ([], "none")], []),
    ],
)
def test_runs_with_other_judges_or_scales_are_counted_and_those_without_judges_ignored(rows: Any, parts: list[str]) -> None:
    text = "".join(describe_unlike_runs(runs(*rows)))
    assert bool(text) == bool(parts)
    assert all(part in text for part in parts)


def test_policies_are_reported_with_judges() -> None:
    both = pd.concat([runs(([A], "a")), runs(([B], "b"), policy="beta=0")])
    first, second = describe_unlike_runs(both)
    assert "policies: beta=0.35 (1 blueprint); beta=0 (1 blueprint)" in first
    assert "different judges" in second


NAMES_OF_BLUEPRINTS = [f"b{at:02d}" for at in range(40)]


def models_compared(*cells: dict[str, Any], weights: dict[str, float] | None = None, **options: Any) -> pd.DataFrame:
    table = scores_of(*cells, weights=weights)
    blueprints = options.pop("blueprints", NAMES_OF_BLUEPRINTS)
    return compare_over_blueprints(table, ["s1", "s2"], blueprints, **options)


def lopsided() -> list[dict[str, Any]]:
    """Blueprints of very different sizes, prompts of different weights, responses missing, models with several variants."""
    rng = np.random.default_rng(5)
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
    rows = models_compared(*cells, weights=weights)
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
    (row,) = models_compared(*cells, weights={"p0": 2.0}).to_dict("records")
    assert 0 < row["low"] < row["difference"] == pytest.approx((2 * 0.1 + 3 * 0.1 + 4 * 0.2) / 9)
    assert (row["n_clusters"], row["n_items"], row["verdict"]) == (8, 8, "better")
    assert row["score"] == pytest.approx(row["other_score"] + row["difference"])


def test_only_the_latest_run_counts_and_only_the_blueprints_that_are_named() -> None:
    earlier = [{**cell, "score": 0.0} for cell in runs_of("a", 0.9, 0.9)]
    later = [*runs_of("a", 0.9, 0.9, snapshot="s2"), *runs_of("b", 0.5, 0.7, snapshot="s2")]
    (row,) = models_compared(*earlier, *later).to_dict("records")
    assert row["difference"] == pytest.approx(0.3)
    (row,) = models_compared(*earlier, *later, blueprints=["b01"]).to_dict("records")
    assert row["difference"] == pytest.approx(0.2)
    assert models_compared(*earlier, *later, blueprints=["elsewhere"]).empty


def test_models_that_share_no_prompt_have_no_row() -> None:
    assert models_compared(*runs_of("a", 0.5, 0.6)).empty
    assert models_compared(*runs_of("a", 0.5), *runs_of("b", 0.5, first=1)).empty
