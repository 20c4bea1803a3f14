"""Policies replayed: regret that never falls, ends that nobody can beat, results that depend on their seed alone, and streams with gaps."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.policies.front import pareto_front, pareto_plot
from dtef_pipeline.qa.policies.replay import POLICY_NAMES, POLICY_REGRET, POLICY_RESULTS, replay_policies, replayed
from dtef_pipeline.qa.policies.stream import OutcomeStream, item_features, outcome_stream
from dtef_pipeline.tables import description


def made(items: int = 300, models: int = 4, seed: int = 0) -> OutcomeStream:
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, models, items)
    chance = np.linspace(0.3, 0.6, models)[None, :] + 0.35 * (topic[:, None] == np.arange(models))
    return OutcomeStream(
        tuple("abcdefghijk"[:models]),
        (rng.random((items, models)) < chance).astype(float),
        np.tile(0.001 * 2.0 ** np.arange(models), (items, 1)),
        rng.random((items, models)) + 0.1,
        item_features(rng.integers(20, 900, items).astype(float), [topic.tolist()]),
    )


def by_policy(stream: OutcomeStream, *policies: str, seeds: int = 20) -> dict[str, dict[str, object]]:
    rows = replay_policies(stream, policies or POLICY_NAMES, seeds=seeds).results.to_pylist()
    return {row["policy"]: row for row in rows}


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_regret_never_falls_and_is_what_was_lost_against_the_best_model_of_each_item(policy: str) -> None:
    stream = made()
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(300), (6, 1)), axis=1)
    found = replayed(stream, policy, orders, np.random.default_rng(2))
    assert found is not None
    assert (np.diff(found.regret.cumsum(axis=1), axis=1) >= 0).all()
    assert found.regret + found.score == pytest.approx(stream.scores.max(axis=1)[orders])
    curve = replay_policies(stream, [policy], seeds=6).regret
    assert (np.diff(curve["regret"].to_numpy()) >= -1e-12).all()
    assert curve["step"].to_pylist()[-1] == 300


def test_fixed_policies_by_hand() -> None:
    stream = OutcomeStream(
        ("small", "large"),
        np.array([[1.0, 1.0], [0.0, 1.0], [0.5, 0.25]]),
        np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0]]),
        np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]]),
        np.ones((3, 1)),
    )
    assert stream.equal_costs() == ""
    assert (
        replace(stream, costs=np.full((3, 2), 0.0006)).equal_costs().startswith("all models cost the same per item ($0.0006)")
    )
    found = by_policy(stream, "always-best", "always-cheapest", "oracle")
    told = {name: (row["quality"], row["cost_usd"], row["latency_s"], row["regret"]) for name, row in found.items()}
    assert told["always-best"] == pytest.approx((0.75, 15, 3, 0.25))
    assert told["always-cheapest"] == pytest.approx((0.5, 3, 1, 1))
    assert told["oracle"] == pytest.approx((2.5 / 3, 7, 5 / 3, 0))  # of two as good the cheaper one
    assert found["oracle"]["shares"] == [
        {"model": "small", "share": pytest.approx(2 / 3)},
        {"model": "large", "share": pytest.approx(1 / 3)},
    ]
    assert found["oracle"]["quality_shares"] == pytest.approx([0, 0, 0, 0, 0, 1 / 3, 0, 0, 0, 2 / 3])
    assert [found[name]["on_front"] for name in found] == [True, True, None]


def test_no_policy_beats_the_oracle_and_random_loses_to_those_that_learn() -> None:
    found = by_policy(made(items=800), seeds=30)
    quality = {name: row["quality"] for name, row in found.items()}
    assert max(quality.values(), key=float) == quality["oracle"]  # type: ignore[arg-type]
    for name in ("epsilon-greedy", "ucb1", "thompson", "linucb", "contextual-thompson", "dueling-bandit"):
        assert quality[name] > quality["random"], name  # type: ignore[operator]
    assert quality["linucb"] > quality["always-best"]  # type: ignore[operator]  # topics tell who is good at what
    assert quality["random"] == pytest.approx(made(items=800).scores.mean(), abs=0.01)


def test_a_policy_that_asks_two_models_pays_both_and_waits_for_the_slower() -> None:
    stream = made(items=50, models=2)
    (row,) = replay_policies(stream, ["dueling-bandit"], seeds=5).results.to_pylist()
    assert 1 < sum(share["share"] for share in row["shares"]) <= 2
    assert row["cost_usd"] == pytest.approx(
        sum(50 * share["share"] * cost for share, cost in zip(row["shares"], (0.001, 0.002), strict=True))
    )


def test_a_duel_is_worth_the_mean_of_its_two_answers_and_not_the_better_one() -> None:
    """The better of two answers counted, which nobody can tell without a score of each: the duels were as good as the oracle for less."""
    rng = np.random.default_rng(3)
    right = rng.integers(0, 2, 200).astype(float)
    stream = OutcomeStream(
        ("a", "b"), np.stack([right, 1 - right], axis=1), np.ones((200, 2)), np.ones((200, 2)), np.ones((200, 1))
    )
    found = by_policy(stream, "dueling-bandit", "oracle")
    asked = sum(share["share"] for share in found["dueling-bandit"]["shares"])  # type: ignore[attr-defined]
    assert asked > 1.5
    assert found["dueling-bandit"]["quality"] == pytest.approx(0.5, abs=0.05)
    assert found["dueling-bandit"]["on_front"] is True
    assert found["oracle"]["quality"] == 1


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    stream = made(items=60)
    first, again, other = (replay_policies(stream, seeds=8, seed=seed) for seed in (1, 1, 2))
    assert first.results.equals(again.results)
    assert first.regret.equals(again.regret)
    assert not first.results.equals(other.results)
    alone = replay_policies(stream, ["thompson"], seeds=8, seed=1).results
    of_all = first.results.filter(pa.array([name == "thompson" for name in first.results["policy"].to_pylist()]))
    assert alone["quality"].equals(of_all["quality"])


def test_intervals_over_seeds_hold_the_mean_and_order_changes_no_fixed_policy() -> None:
    for name, row in by_policy(made(items=100), seeds=40).items():
        for mean, prefix in (("quality", "quality"), ("cost_usd", "cost"), ("regret", "regret")):
            low, high = f"{prefix}_low", f"{prefix}_high"
            assert row[low] <= row[mean] + 1e-9  # type: ignore[operator]
            assert row[mean] <= row[high] + 1e-9  # type: ignore[operator]
        if name in ("always-best", "always-cheapest", "oracle"):
            assert row["quality_low"] == pytest.approx(row["quality_high"])


def test_a_thousand_items_and_all_policies_in_a_hundred_orders_take_seconds() -> None:
    began = time.perf_counter()
    replay_policies(made(items=1_000, models=6))
    assert time.perf_counter() - began < 30  # about one second on an idle core


def rows_of(cells: list[tuple[str, str, float | None, float | None]], **columns: list[object]) -> pa.Table:
    names = ("item_id", "model", "score", "cost_usd")
    types = (pa.string(), pa.string(), pa.float64(), pa.float64())
    arrays = {name: pa.array(list(c), t) for name, c, t in zip(names, zip(*cells, strict=True), types, strict=True)}
    return pa.table({**arrays, **columns})


def test_items_without_a_score_of_some_model_are_left_out_and_counted() -> None:
    stream = outcome_stream(
        rows_of(
            [("i", "a", 1.0, 2.0), ("i", "b", 0.5, None), ("j", "a", 1.0, 1.0), ("k", "b", None, 1.0), ("k", "a", 0.0, 1.0)],
            text_length=[10, 10, 20, 30, 30],
        )
    )
    assert (stream.models, stream.left_out) == (("a", "b"), 2)
    assert stream.scores.tolist() == [[1.0, 0.5]]
    assert np.isnan(stream.costs[0, 1])
    (row,) = replay_policies(stream, ["ucb1"], seeds=3).results.to_pylist()
    assert (row["n_items"], row["n_left_out"], row["cost_usd"], row["on_front"]) == (1, 2, None, None)
    assert stream.partly_scored() == ["b has a score for 1 of 3 items"]
    assert stream.unknown()[0] == "the cost is not known of b (1 of 1 item)"
    assert stream.unknown(np.array([True, False])) == ["the latency is not known of a (1 of 1 item)"]
    assert "the cost is not known of b (1 of 1 item); the latency is not known of a" in row["note"]


def test_draws_are_averaged_and_items_of_two_suites_are_two() -> None:
    cells = [("i", "a", 1.0, 1.0), ("i", "a", 0.0, 3.0), ("i", "b", 1.0, 1.0), ("i", "a", 0.0, 1.0), ("i", "b", 0.0, 1.0)]
    stream = outcome_stream(rows_of(cells, suite=["s", "s", "s", "t", "t"]), categories=["suite"])  # type: ignore[list-item]
    assert stream.scores.tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert stream.costs[0].tolist() == [2.0, 1.0]
    assert stream.features.shape == (2, 2)


def test_features_are_one_the_length_and_frequent_values_beyond_the_first() -> None:
    found = item_features(np.array([10.0, 1_000.0, np.nan]), [["law", "art", "law"]])
    assert found[:, 0].tolist() == [1, 1, 1]
    assert found[:2, 1].tolist() == pytest.approx([-1, 1])
    assert found[:, 2].tolist() == [0, 1, 0]
    assert found[2, 1] == 0
    assert item_features(np.full(100, np.nan), [[str(at) for at in range(100)]]).shape == (100, 20)


def test_without_any_price_the_cheapest_is_not_known_and_says_so() -> None:
    stream = made(items=10)
    blind = OutcomeStream(stream.models, stream.scores, np.full(stream.costs.shape, np.nan), stream.latencies, stream.features)
    found = by_policy(blind, seeds=2)
    assert (found["always-cheapest"]["quality"], found["always-cheapest"]["note"]) == (
        None,
        "no model's cost is known for every item: the cost is not known of "
        + ", ".join(f"{model} (10 of 10 items)" for model in "abcd"),
    )
    assert found["oracle"]["quality"] is not None
    assert {row["cost_usd"] for row in found.values()} == {None}
    assert "no data: the cost of no policy is known" in pareto_plot(replay_policies(blind, seeds=2).results)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([("i", "a", 1.0, 1.0)], "got 1 model and 1 item"),
        (
            [("i", "a", 1.0, 1.0), ("j", "b", 1.0, 1.0)],
            "got 2 models and 0 items with a score of each \\(2 items left out; a has a score for 1 of 2",
        ),
        ([("i", "a", 1.5, 1.0), ("i", "b", 1.0, 1.0)], "allowed: 0 to 1"),
    ],
)
def test_a_stream_that_leaves_no_choice_is_refused(cells: list[tuple[str, str, float | None, float | None]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        outcome_stream(rows_of(cells))


def test_unknown_policies_and_no_replay_are_refused() -> None:
    with pytest.raises(ConfigError, match="policy 'softmax': allowed: epsilon-greedy, ucb1"):
        replay_policies(made(items=5), ["softmax"])
    with pytest.raises(ConfigError, match="got 0 seeds"):
        replay_policies(made(items=5), seeds=0)


@given(st.lists(st.tuples(st.integers(0, 6) | st.just(None), st.integers(0, 6)), min_size=1, max_size=20))
def test_the_front_holds_those_that_no_other_one_beats(points: list[tuple[int | None, int]]) -> None:
    cost = np.array([np.nan if c is None else float(c) for c, _ in points])
    quality = np.array([float(q) for _, q in points])
    wanted = [
        c is not None and not any(d is not None and d <= c and r >= q and (d, r) != (c, q) for d, r in points)
        for c, q in points
    ]
    assert pareto_front(cost, quality).tolist() == wanted


def test_the_plot_names_every_policy_and_hollows_those_that_are_beaten() -> None:
    found = replay_policies(made(), seeds=5).results
    svg = pareto_plot(found)
    for row in found.to_pylist():
        assert f"<title>{row['policy']}: quality {row['quality']:.4f}" in svg
    assert svg.count('class="dot baseline"') == found["on_front"].to_pylist().count(False)
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_names_of_policies_at_one_place_do_not_cover_each_other() -> None:
    rows = [{"policy": f"policy {at}", "cost_usd": 1.0, "quality": 0.5, "on_front": True} for at in range(8)]
    found = pareto_plot(pa.Table.from_pylist(rows))
    places = re.findall(r'<text x="([\d.]+)%" y="([\d.]+)" text-anchor="(\w+)" class="halo">', found)
    assert len(set(places)) == 8


def test_every_column_is_described() -> None:
    for column in (*POLICY_RESULTS, *POLICY_REGRET):
        assert description(column)[0].isupper()
