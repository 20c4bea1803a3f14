"""Means of scores: shared examples, a plain loop over dictionaries, the interval each kind of score gets, and what may not change anything."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dtef_pipeline.boards.item_means import compute_mean_intervals, compute_pass_rates, compute_result_means
from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.proportions import compute_unit_interval, compute_wilson_interval
from tests.made.shared_cases import cases

SCORE_FIELDS = {
    "suite": pa.string(),
    "item_id": pa.string(),
    "cluster": pa.string(),
    "status": pa.string(),
    "value": pa.float64(),
}
Row = tuple[str, str, str, str, float | None]


def scores_of(rows: list[Row]) -> pa.Table:
    """Rows of (suite, item, cluster, status, value)."""
    columns = zip(*rows, strict=True) if rows else [[]] * 5
    table = pa.table(
        [pa.array(list(c), t) for c, t in zip(columns, SCORE_FIELDS.values(), strict=True)], names=list(SCORE_FIELDS)
    )
    score = [0.0 if status == "unparseable" else value for _, _, _, status, value in rows]
    return table.append_column("score", pa.array(score, pa.float64()))


def only(rows: list[Row]) -> dict[str, Any]:
    (found,) = compute_result_means(scores_of(rows), ["suite"]).to_pylist()
    return dict(found)


def test_shared_accuracies_hold() -> None:
    for case in cases("benchmarks", "accuracy"):
        given_scores, parsed = case["in"]["scores"], case["in"]["parsed"]
        rows: list[Row] = [
            ("mmlu", f"i{at}", "law", "ok" if read else "unparseable", float(score) if read else None)
            for at, (score, read) in enumerate(zip(given_scores, parsed, strict=True))
        ]
        found = only(rows)
        told = {
            "accuracy": found["score"],
            "parse_rate": found["parse_rate"],
            "accuracy_given_parsed": found["score_given_parsed"],
        }
        assert told == pytest.approx(case["out"], abs=case["tol"])


def test_shared_means_over_items_and_over_subjects_hold() -> None:
    for case in cases("benchmarks", "macro_micro"):
        rows: list[Row] = [
            ("mmlu", f"{name}/{at}", name, "ok", float(score))
            for name, given_scores in case["in"]["subjects"].items()
            for at, score in enumerate(given_scores)
        ]
        found = only(rows)
        assert {"micro": found["score"], "macro": found["macro_score"]} == pytest.approx(case["out"], abs=case["tol"])


def test_shared_wilson_intervals_hold() -> None:
    for case in cases("benchmarks", "wilson"):
        right, n = case["in"]["right"], case["in"]["n"]
        found = only([("s", f"i{at}", f"i{at}", "ok", float(at < right)) for at in range(n)])
        assert [found["score_low"], found["score_high"]] == pytest.approx(case["out"], abs=case["tol"])
        assert found["interval_kind"] == "wilson"


STATUS = st.sampled_from(["ok", "ok", "unparseable", "judge_failed", "skipped_sample", "skipped_budget"])
ROW = st.tuples(st.sampled_from("st"), st.integers(0, 6), STATUS, st.floats(0, 1))


def naive(rows: list[Row], suite: str) -> dict[str, Any]:
    own = [row for row in rows if row[0] == suite]
    by_item: dict[str, list[float]] = defaultdict(list)
    read: dict[str, list[float]] = defaultdict(list)
    cluster = {}
    for _, item, group, status, value in own:
        cluster[item] = group
        if status == "ok" and value is not None:
            by_item[item].append(value)
            read[item].append(value)
        elif status == "unparseable":
            by_item[item].append(0.0)
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for item, values in by_item.items():
        by_cluster[cluster[item]].append(fmean(values))
    scored = [row for row in own if row[3] in ("ok", "unparseable")]
    return {
        "n_total": len(own),
        "n_scored": len(scored),
        "n_skipped": sum(row[3].startswith("skipped") for row in own),
        "n_failed": sum(row[3] == "judge_failed" for row in own),
        "n_items": len(by_item),
        "n_clusters": len(by_cluster),
        "parse_rate": fmean(row[3] == "ok" for row in scored) if scored else None,
        "score": fmean(map(fmean, by_item.values())) if by_item else None,
        "score_given_parsed": fmean(map(fmean, read.values())) if read else None,
        "macro_score": fmean(map(fmean, by_cluster.values())) if by_cluster else None,
    }


@given(st.lists(ROW, min_size=1, max_size=60))
def test_means_are_those_of_a_plain_loop(drawn: list[tuple[str, int, str, float]]) -> None:
    rows: list[Row] = [
        (suite, f"i{item}", f"c{item % 3}", status, value if status == "ok" else None) for suite, item, status, value in drawn
    ]
    found = compute_result_means(scores_of(rows), ["suite"])
    assert found["suite"].to_pylist() == list(dict.fromkeys(row[0] for row in rows))
    for row in found.to_pylist():
        wanted = naive(rows, row["suite"])
        known = {name: value for name, value in wanted.items() if value is not None}
        assert {name: row[name] for name in known} == pytest.approx(known)
        assert all(row[name] is None for name in wanted.keys() - known)
        assert row["score_low"] is None or 0 <= row["score_low"] <= row["score_high"] <= 1


def test_items_that_repeated_draws_agree_on_get_the_interval_of_one_draw() -> None:
    """One of eight right in each of three draws had the interval [0, .75]: it is the values that make Wilson's interval right."""
    thrice: list[Row] = [("s", f"i{at}", "c", "ok", float(at == 0)) for at in range(8)] * 3
    low, high = compute_wilson_interval(1, 8)
    found = only(thrice)
    assert (found["score_low"], found["score_high"]) == pytest.approx((float(low), float(high)))
    mixed = only([*thrice[:-1], ("s", "i7", "c", "ok", 1.0)])
    assert mixed["interval_kind"] == "t"


def test_of_few_clusters_the_mean_of_items_has_an_interval_by_items_that_says_so() -> None:
    """Two subjects with ten items each had no interval at all."""
    rows: list[Row] = [("s", f"i{at}", f"c{at % 2}", "ok", float(at % 3 == 0)) for at in range(20)]
    found = only(rows)
    low, high = compute_wilson_interval(7, 20)
    assert (found["score_low"], found["score_high"]) == pytest.approx((float(low), float(high)))
    assert found["interval_kind"] == "wilson"
    assert found["note"] == (
        "the interval covers only other items of these 2 clusters; no interval for the mean of groups: 2 clusters, at least 5 are needed"
    )
    partial = only([(suite, item, cluster, status, at / 20) for at, (suite, item, cluster, status, _) in enumerate(rows)])
    assert (partial["interval_kind"], partial["macro_low"]) == ("t", None)


def test_the_interval_of_graded_items_is_that_of_a_mean_within_0_and_1() -> None:
    values = np.random.default_rng(2).random(40)
    found = only([("s", f"i{at}", "c", "ok", float(value)) for at, value in enumerate(values)])
    low, high = compute_unit_interval(estimate_ratios(values[:, None], np.ones((40, 1))))
    assert (found["score_low"], found["score_high"]) == pytest.approx((low[0], high[0]))
    assert high[0] - low[0] == pytest.approx(2 * 2.0227 * stats.sem(values), rel=0.02)


def test_items_of_several_clusters_are_judged_by_whole_clusters() -> None:
    """Items of one subject go wrong together: counted one by one they make an interval that is too narrow."""
    rng = np.random.default_rng(4)
    sizes, levels = rng.integers(3, 40, 12), rng.random(12)
    right = [rng.random(n) < level for n, level in zip(sizes, levels, strict=True)]
    rows: list[Row] = [
        ("s", f"c{c}/{at}", f"c{c}", "ok", float(one)) for c, items in enumerate(right) for at, one in enumerate(items)
    ]
    found = only(rows)
    sums = np.array([items.sum() for items in right], dtype=float)[:, None]
    low, high = compute_unit_interval(estimate_ratios(sums, sizes[:, None].astype(float)))
    assert (found["score_low"], found["score_high"]) == pytest.approx((low[0], high[0]))
    assert found["interval_kind"] == "clustered"
    alone = only([(suite, item, item, status, value) for suite, item, _, status, value in rows])
    assert alone["interval_kind"] == "wilson"
    assert found["score_high"] - found["score_low"] > 1.5 * (alone["score_high"] - alone["score_low"])


def test_equal_scores_have_the_interval_of_shares() -> None:
    """Items or subjects with one and the same score had no interval, and nearly the same ones a far too narrow one."""
    low, high = map(float, compute_wilson_interval(4.5, 9))
    alone = only([("s", f"i{at}", f"c{at}", "ok", 0.5) for at in range(9)])
    together = only([("s", f"i{at}", f"c{at // 2}", "ok", 0.5) for at in range(18)])
    nearly = only([("s", f"i{at}", f"c{at}", "ok", 0.5 + at / 1e4) for at in range(9)])
    for row in (alone, together):
        assert (row["score_low"], row["score_high"], row["macro_low"]) == pytest.approx((low, high, low))
    assert nearly["score_low"] == pytest.approx(low, abs=0.001)


def test_right_and_wrong_items_are_counted_within_their_group_alone() -> None:
    values, group = np.array([1.0, 0, 1, 0.5, 0.2]), np.array([0, 0, 0, 1, 1])
    found = compute_mean_intervals(values, group, 3, np.ones(3, dtype=bool), "item")
    low, high = compute_wilson_interval(2, 3)
    assert (found.low[0], found.high[0]) == pytest.approx((float(low), float(high)))
    assert found.kind.tolist() == ["wilson", None, None]
    assert found.why_none[1:] == ["no interval: 2 items, at least 5 are needed", ""]


def test_a_graded_score_that_is_one_everywhere_has_no_interval_of_shares() -> None:
    """Three items with the full weight had Wilson's bar, as if each could only be right or wrong."""
    rows: list[Row] = [("s", f"i{at}", f"c{at}", "ok", 1.0) for at in range(3)]
    metrics = ["correct", "passed", "score", "existence", "judged"]
    tables = [scores_of(rows).append_column("metric", pa.array([metric] * 3)) for metric in metrics]
    found = compute_result_means(pa.concat_tables(tables), ["suite", "metric"]).to_pylist()
    assert {row["metric"]: row["interval_kind"] for row in found} == {
        metric: "wilson" if metric in ("correct", "passed") else None for metric in metrics
    }
    assert [row["macro_low"] is None for row in found] == [False, False, True, True, True]
    assert all("no interval" in row["note"] for row in found[2:])


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


def test_each_model_has_its_rates_in_the_order_of_k() -> None:
    table = pa.table({"model": ["b", "b", "a", "a"], "item_id": ["i", "i", "i", "i"], "score": [1.0, 0.0, 0.0, 0.0]})
    found = compute_pass_rates(table, ["model"], [1, 2])
    assert found.select(["model", "k", "pass_at_k"]).to_pylist() == [
        {"model": "b", "k": 1, "pass_at_k": 0.5},
        {"model": "b", "k": 2, "pass_at_k": 1.0},
        {"model": "a", "k": 1, "pass_at_k": 0.0},
        {"model": "a", "k": 2, "pass_at_k": 0.0},
    ]
