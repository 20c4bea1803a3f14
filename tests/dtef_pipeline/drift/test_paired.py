"""Paired differences to the baseline of each item: the definition, missing items, and what the items of a battery share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.drift.paired import pair_with_baseline

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
    found = pair_with_baseline(table, questions, baseline=baseline)
    means, errors, of_question = by_definition(kept, questions, min(baseline, kept.shape[1]))
    np.testing.assert_allclose(found.means, means, atol=1e-12)
    np.testing.assert_allclose(found.spread, errors, atol=1e-12)
    np.testing.assert_allclose(found.by_item.to_numpy(), [of_question[q] for q in found.by_item.index], atol=1e-12)


def test_what_the_questions_of_a_battery_have_in_common_is_no_scatter_of_single_responses() -> None:
    generator = np.random.default_rng(6)
    shared = np.repeat(generator.normal(0, 0.1, (10, 8)), 10, axis=0)
    found = pair_with_baseline(
        frame(*(shared + generator.normal(0.6, 0.01, shared.shape)).tolist()), [f"b{i // 10}" for i in range(100)], baseline=3
    )
    assert found.spread.mean() == pytest.approx(0.1 / math.sqrt(10), rel=0.2)
    assert found.sampling.mean() == pytest.approx(0.1 / math.sqrt(100), rel=0.2)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=14),
    st.integers(1, 6),
)
def test_the_split_leaves_the_least_squares_of_all(means: list[float], baseline: int) -> None:
    pairs = pair_with_baseline(frame(means), ["a"], baseline=baseline)
    begin = baseline if len(means) > baseline else 1
    assert pairs.begin == begin

    def left(at: int) -> float:
        return sum(float(((part - part.mean()) ** 2).sum()) for part in (pairs.means[:at], pairs.means[at:]))

    assert begin <= pairs.split < len(means)
    assert left(pairs.split) == pytest.approx(min(left(at) for at in range(begin, len(means))), abs=1e-9)


def test_items_of_a_cluster_spread_as_one_and_are_named_each_by_itself() -> None:
    # Six items that move alike are no more evidence than one.
    rng = np.random.default_rng(3)
    apart = pd.DataFrame(0.7 + 0.05 * rng.normal(size=(8, 6)), columns=[f"n{at}" for at in range(6)])
    six = apart.loc[apart.index.repeat(6)].reset_index(drop=True)
    names = [f"S1/q{at}" for at in range(48)]
    found = pair_with_baseline(six, [f"b{at // 6}" for at in range(48)], baseline=3, items=names)
    np.testing.assert_allclose(found.spread, pair_with_baseline(apart, list("abcdefgh"), baseline=3).spread)
    assert (pair_with_baseline(six, names, baseline=3).spread < 0.5 * found.spread).all()
    assert {one["item"] for one in found.list_top_changes(3)} < set(names)
