"""Paired differences to the baseline of each item: the definition, missing items, and no influence of later snapshots."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.drift.paired import paired

NAN = math.nan


def frame(*rows: list[float]) -> pd.DataFrame:
    return pd.DataFrame([list(row) for row in rows], columns=[f"n{place}" for place in range(len(rows[0]))])


def by_definition(
    values: npt.NDArray[np.float64], questions: list[str], baseline: int
) -> tuple[list[float], list[float], dict[str, list[float]]]:
    """Means, standard errors and means a question, by loops over items."""
    means, errors = [], []
    of_question: dict[str, list[float]] = {question: [] for question in sorted(set(questions))}
    for night in range(values.shape[1]):
        differences: dict[str, list[float]] = {question: [] for question in of_question}
        for item, question in enumerate(questions):
            before = [x for x in values[item, :baseline] if not math.isnan(x)]
            if before and not math.isnan(values[item, night]):
                differences[question].append(values[item, night] - sum(before) / len(before))
        everything = [d for each in differences.values() for d in each]
        mean = sum(everything) / len(everything)
        totals = [sum(each) - len(each) * mean for each in differences.values() if each]
        q = len(totals)
        error = math.sqrt(q / (q - 1) * sum(total**2 for total in totals)) / len(everything)
        factor = baseline / (baseline - 1) if night < baseline else baseline / (baseline + 1)
        means.append(mean)
        errors.append(error * math.sqrt(factor))
        for question, each in differences.items():
            of_question[question].append(sum(each) / len(each) if each else NAN)
    return means, errors, of_question


def test_differences_are_to_the_mean_of_the_items_own_baseline() -> None:
    # Baselines .3 and .7; the last night is .1 above the first and .3 above the second.
    found = paired(frame([0.2, 0.4, 0.4], [0.7, 0.7, 1.0]), ["a", "b"], baseline=2)
    assert found.snapshots == ("n0", "n1", "n2")
    assert found.means.tolist() == pytest.approx([-0.05, 0.05, 0.2])
    # Standard deviations of the two differences: .0707, .0707, .1414, each over sqrt(2), times sqrt(2 / 1) or sqrt(2 / 3).
    assert found.spread.tolist() == pytest.approx([0.05 * math.sqrt(2), 0.05 * math.sqrt(2), 0.1 * math.sqrt(2 / 3)])
    assert found.by_item.loc["b"].tolist() == pytest.approx([0, 0, 0.3])
    assert found.baseline == 2


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 6), st.floats(0, 0.4))
def test_equals_the_definition_where_questions_have_unequal_items_and_some_are_missing(
    seed: int, baseline: int, asked: int, missing: float
) -> None:
    generator = np.random.default_rng(seed)
    questions = [f"q{q}" for q in range(asked) for _ in range(int(generator.integers(1, 6)))]
    values = generator.random((len(questions), 8))
    values[generator.random(values.shape) < missing * np.arange(len(questions))[:, None] / len(questions)] = NAN
    values[0] = 0.5  # two questions are there on every night, in items that are answered
    values[questions.index("q1")] = 0.6
    table = pd.DataFrame(values, columns=[f"n{place}" for place in range(8)])
    kept = values[:, (~np.isnan(values)).mean(axis=0) >= 0.5]
    found = paired(table, questions, baseline=baseline)
    means, errors, of_question = by_definition(kept, questions, min(baseline, kept.shape[1]))
    np.testing.assert_allclose(found.means, means, atol=1e-12)
    np.testing.assert_allclose(found.spread, errors, atol=1e-12)
    np.testing.assert_allclose(found.by_item.to_numpy(), [of_question[q] for q in found.by_item.index], atol=1e-12)


def test_items_in_another_order_say_the_same() -> None:
    generator = np.random.default_rng(3)
    values, questions = generator.random((12, 7)), [f"q{i % 4}" for i in range(12)]
    order = generator.permutation(12)
    one = paired(frame(*values.tolist()), questions, baseline=3)
    other = paired(frame(*values[order].tolist()), [questions[i] for i in order], baseline=3)
    np.testing.assert_allclose(one.means, other.means, atol=1e-12)
    np.testing.assert_allclose(one.spread, other.spread, atol=1e-12)
    pd.testing.assert_frame_equal(one.by_item, other.by_item)


def test_spread_is_that_of_the_nights_own_means_within_the_baseline_and_after() -> None:
    """Questions of sd .2: a mean over 100 of them has .02, whatever is subtracted from it."""
    values = np.random.default_rng(4).normal(0.7, 0.2, (100, 400))
    found = paired(pd.DataFrame(values, columns=[str(i) for i in range(400)]), [f"q{i}" for i in range(100)], baseline=200)
    assert found.spread[:200].mean() == pytest.approx(0.02, rel=0.02)
    assert found.spread[200:].mean() == pytest.approx(0.02, rel=0.02)
    few = paired(pd.DataFrame(values[:, :4], columns=list("abcd")), [f"q{i}" for i in range(100)], baseline=2)
    assert few.spread.tolist() == pytest.approx([0.02] * 4, rel=0.25)


def test_what_the_questions_of_a_battery_have_in_common_is_no_scatter_of_single_responses() -> None:
    generator = np.random.default_rng(6)
    shared = np.repeat(generator.normal(0, 0.1, (10, 8)), 10, axis=0)
    found = paired(
        frame(*(shared + generator.normal(0.6, 0.01, shared.shape)).tolist()), [f"b{i // 10}" for i in range(100)], baseline=3
    )
    assert found.spread.mean() == pytest.approx(0.1 / math.sqrt(10), rel=0.2)
    assert found.sampling.mean() == pytest.approx(0.1 / math.sqrt(100), rel=0.2)


def test_what_a_snapshot_says_does_not_depend_on_later_ones() -> None:
    values = np.random.default_rng(5).random((20, 10))
    values[3, 8], values[7, 9] = NAN, NAN
    questions = [f"q{i // 2}" for i in range(20)]
    whole = paired(frame(*values.tolist()), questions, baseline=3)
    early = paired(frame(*values[:, :6].tolist()), questions, baseline=3)
    np.testing.assert_allclose(early.means, whole.means[:6], atol=1e-12)
    np.testing.assert_allclose(early.spread, whole.spread[:6], atol=1e-12)


def test_a_night_that_answered_too_little_is_left_out_and_no_part_of_the_baseline() -> None:
    found = paired(frame([0.5, NAN, 0.5, 0.7], [0.5, NAN, 0.5, 0.7], [0.5, 0.9, 0.5, 0.7]), ["a", "b", "c"], baseline=2)
    assert found.snapshots == ("n0", "n2", "n3")
    assert found.means.tolist() == pytest.approx([0, 0, 0.2])


def test_an_item_without_a_baseline_is_compared_with_nothing() -> None:
    found = paired(frame([0.5, 0.5, 0.6], [0.5, 0.5, 0.6], [NAN, NAN, 0.9]), ["a", "b", "c"], baseline=2)
    assert found.means.tolist() == pytest.approx([0, 0, 0.1])
    assert found.by_item.loc["c"].isna().all()
    assert [one.item for one in found.moved(2)] == ["a", "b"]


def test_a_night_that_shares_no_item_with_the_baseline_is_left_out() -> None:
    found = paired(frame([0.5, 0.5, NAN], [NAN, NAN, 0.9]), ["a", "b"], baseline=2)
    assert found.snapshots == ("n0", "n1")


def test_one_question_has_no_spread_and_fewer_nights_than_the_baseline_are_one() -> None:
    found = paired(frame([0.5, 0.7], [0.3, 0.9]), ["a", "a"], baseline=5)
    assert found.spread == pytest.approx([0, 0], abs=1e-12)
    assert found.baseline == 2
    assert found.moved(5) == []


@pytest.mark.parametrize("values", [pd.DataFrame(), pd.DataFrame({"n0": []}), pd.DataFrame({"n0": [NAN]})])
def test_nothing_scored_is_nothing_compared(values: pd.DataFrame) -> None:
    found = paired(values, ["a"] * len(values), baseline=5)
    assert (found.snapshots, found.means.tolist(), found.baseline) == ((), [], 0)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=14),
    st.integers(1, 6),
)
def test_the_split_leaves_the_least_squares_of_all(means: list[float], baseline: int) -> None:
    pairs = paired(frame(means), ["a"], baseline=baseline)
    begin = baseline if len(means) > baseline else 1
    assert pairs.begin == begin

    def left(at: int) -> float:
        return sum(float(((part - part.mean()) ** 2).sum()) for part in (pairs.means[:at], pairs.means[at:]))

    assert begin <= pairs.split < len(means)
    assert left(pairs.split) == pytest.approx(min(left(at) for at in range(begin, len(means))), abs=1e-9)


def test_the_clusters_that_moved_most_come_first_by_size_whatever_the_direction() -> None:
    rows = [[0.5, 0.5, 0.5 + by, 0.5 + by] for by in (0.1, -0.4, 0.0, 0.2, -0.3, 0.05)]
    moved = paired(frame(*rows), ["a", "b", "c", "d", "e", "f"], baseline=2).moved(2)
    assert [one.item for one in moved] == ["b", "e", "d", "a", "f"]
    assert [one.shift for one in moved] == pytest.approx([-0.4, -0.3, 0.2, 0.1, 0.05])


def test_items_of_a_cluster_spread_as_one_and_are_named_each_by_itself() -> None:
    # Six items that move alike are no more evidence than one.
    rng = np.random.default_rng(3)
    apart = pd.DataFrame(0.7 + 0.05 * rng.normal(size=(8, 6)), columns=[f"n{at}" for at in range(6)])
    six = apart.loc[apart.index.repeat(6)].reset_index(drop=True)
    names = [f"S1/q{at}" for at in range(48)]
    found = paired(six, [f"b{at // 6}" for at in range(48)], baseline=3, items=names)
    np.testing.assert_allclose(found.spread, paired(apart, list("abcdefgh"), baseline=3).spread)
    assert (paired(six, names, baseline=3).spread < 0.5 * found.spread).all()
    assert {one.item for one in found.moved(3)} < set(names)
