"""Verdicts where something is amiss: missing answers, a drift that came back, outages."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.drift.evidence import LONGEST_OUTAGE, NO_OUTAGES, Outages, evidence, find_outages
from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.paired import Scores, pair_with_baseline
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule, build_rule_table
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.drift.verdict_text import group_reasons
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import nights


def verdict(first: list[float], second: list[float], *, temperature: float | None = 0.0, hours: float = 24) -> DriftVerdict:
    times = {"a": datetime(2026, 1, 1), "b": datetime.fromtimestamp(datetime(2026, 1, 1).timestamp() + 3600 * hours)}
    return apply_drift_rule(pd.DataFrame({"a": first, "b": second}), times, temperature=temperature)


@pytest.mark.parametrize(
    ("low", "high", "flagged"),
    [
        (0.30, 0.35, True),  # 0.35 - 0.30 is below 0.05 in floating point, and counts
        (0.50, 0.55, True),  # exactly 10 % of the lowest
        (0.60, 0.65, False),  # 0.05, but only 8.3 %
        (0.20, 0.24, False),  # 20 %, but only 0.04
        (0.00, 0.05, True),  # no lowest to be relative to
        (0.80, 0.88, True),
        (0.80, 0.8799, False),
    ],
)
def test_both_thresholds_are_needed_and_exact_at_the_boundary(low: float, high: float, flagged: bool) -> None:
    assert verdict([low], [high]).flagged is flagged
    assert verdict([high], [low]).flagged is flagged


def test_means_are_over_items_scored_in_every_snapshot() -> None:
    found = verdict([0.5, 0.5, math.nan], [0.5, math.nan, 0.9])
    assert (found.n_items, found.gap, found.flagged) == (1, pytest.approx(0, abs=1e-12), False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"temperature": 0.7}, "temperature is 0.7, not 0"),
        ({"temperature": None}, "temperature is not set"),
        ({"hours": 22.9}, "span 22.9 h, 23 h needed"),
        ({"hours": 22.97}, "span 22.9 h, 23 h needed"),
    ],
)
def test_series_that_may_not_be_compared_say_why(arguments: dict[str, Any], reason: str) -> None:
    found = verdict([0.1], [0.9], **arguments)
    assert not found.flagged
    assert found.gap is None
    assert reason in found.reason


def row(model: str, gap: float | None, partition: str = "S1/a", test: str = "t") -> dict[str, Any]:
    named = {"partition": partition, "test": test, "model": model, "setting": "plain"}
    return {**named, "gap": gap, "flagged": gap is not None and gap >= 0.2}


def test_the_flagged_series_with_the_largest_gap_of_its_partition_and_test_is_to_be_investigated() -> None:
    rows = [row("m", 0.2), row("n", 0.6), row("o", 0.1), row("first", 0.3, "S1/b"), row("equal", 0.3, "S1/b")]
    rows += [row("other", 0.2, test="u"), row("alone", 0.1, "S1/c"), row("lacks", None, "S1/c")]
    with duckdb.connect() as connection:
        found = build_rule_table(connection, replace(SUBJECT, rule=lambda _: rows))
    assert found.schema == DRIFT_RULE
    assert [one["model"] for one in found.to_pylist() if one["is_largest_gap"]] == ["n", "first", "other"]
    assert set(found["family"].to_pylist()) == {"survey"}


def test_of_surveys_it_is_what_the_stage_found_in_each_segment() -> None:
    checks = drift_checks(scores_table([*nights([0.8, 0.8, 0.5]), *nights([0.6] * 3, model="steady")]), SUBJECT)
    with duckdb.connect() as connection:
        assert len(build_rule_table(connection, SUBJECT)) == 0, "the stage has not run yet"
        connection.register("drift_checks", checks)
        found = build_rule_table(connection, SUBJECT).to_pylist()
    assert [(one["partition"], one["model"], one["setting"], one["is_largest_gap"]) for one in found] == [
        ("S1/country:kenya", "m", "context 0", True),
        ("S1/country:kenya", "steady", "context 0", False),
    ]
    for one, stored in zip(found, checks.to_pylist(), strict=True):
        assert {name: one[name] for name in ("lowest", "highest", "gap", "reason")} == {
            name: stored[name] for name in ("lowest", "highest", "gap", "reason")
        }
        assert one["test"] == ""


AT_HOURS = {"equal": ((0.5, 0.5), 48), "apart": ((0.5, 0.51), 48), "close": ((0.5, 0.9), 3), "close and equal": ((0.5, 0.5), 3)}
GROUPED = {
    "equal": "the scores are equal in both of the snapshots: below the thresholds 0.05 and 10 %",
    "apart": "the scores differ: below the thresholds 0.05 and 10 %",
    "close": "not compared: the snapshots span too little time, 23 h needed",
    "close and equal": "not compared: the snapshots span too little time, 23 h needed",
}


@pytest.mark.parametrize("kind", GROUPED)
def test_reasons_of_series_with_other_scores_are_one(kind: str) -> None:
    """`dtef drift` had twenty rows for one reason, since each held the score of its series."""
    (first, second), hours = AT_HOURS[kind]
    found: dict[str, int] = {}
    for more, later in ((0.0, 0), (0.0625, 1)):
        values = pd.DataFrame({"night.1": np.full(4, first + more), "night-2": np.full(4, second + more)})
        at = {
            "night.1": datetime(2026, 1, 1, tzinfo=UTC),
            "night-2": datetime(2026, 1, 1 + hours // 24, hours % 24 + later, tzinfo=UTC),
        }
        reason = apply_drift_rule(values, at, temperature=0).reason
        assert f"{first + more:.4f} in" in reason
        found[f"{reason}; no longer asked: last in night-2"] = 2
    assert group_reasons(found) == [(f"{GROUPED[kind]}; no longer asked: last in night-2", 4)]
    (alone, _) = found
    assert group_reasons({alone: 3}) == [(alone, 3)]


def test_other_reasons_stay_apart_and_the_most_frequent_stands_first() -> None:
    counts = {"not compared: temperature is 0.7, not 0": 1, "not compared: temperature is 1, not 0": 2, "": 1}
    assert group_reasons(counts) == [
        ("not compared: temperature is 1, not 0", 2),
        ("", 1),
        ("not compared: temperature is 0.7, not 0", 1),
    ]
    few = {f"equal; {n} of 1,200 prompts of base are compared: the baseline has no others": 1 for n in (3, 4)}
    assert group_reasons(few) == [("equal; not all prompts of base are compared: the baseline has no others", 2)]


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


THRESHOLD = math.log10(20)


def scores(nights: int, *, seed: int = 0, noise: float = 0.1, missing: float = 0.0, questions: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 0.8, (questions, 1)) + rng.normal(0, noise, (questions, nights))
    values[rng.uniform(size=values.shape) < missing] = np.nan
    return pd.DataFrame(values, columns=[f"n{night:03d}" for night in range(nights)])


def judge(values: pd.DataFrame) -> Verdict:
    """Beside another model that does not move."""
    others = {"steady": Scores(pd.DataFrame(0.6, index=values.index, columns=values.columns))}
    return compute_verdict(values, [f"q{row}" for row in range(len(values))], baseline=5, threshold=THRESHOLD, peers=others)


def test_a_drift_stays_one_where_every_prompt_lacks_a_score_in_some_snapshot() -> None:
    values = scores(60, missing=0.05)
    values.iloc[:, 20:] -= 0.1
    rule = apply_drift_rule(values, dict.fromkeys(values.columns, None), temperature=0)
    assert rule.n_items < 10
    found = judge(values)
    assert (found.verdict, found.first_snapshot) == ("drift", "n020")
    assert found.shift == pytest.approx(-0.1, abs=0.02)


def test_a_drift_that_came_back_is_reported_with_its_own_size_and_date_and_where_it_is_now() -> None:
    values = scores(100)
    values.iloc[:, 20:30] -= 0.2
    values.iloc[:, 60:] += 0.1
    found = judge(values)
    assert found.verdict == "drift"
    assert found.first_snapshot == "n020"
    assert found.shift == pytest.approx(-0.2, abs=0.03)
    low, high = found.shift_low, found.shift_high
    assert low is not None
    assert high is not None
    assert low < -0.2 < high < 0
    assert found.top_changes
    assert all(one["shift"] < 0 for one in found.top_changes)
    assert found.notes[0].startswith("the latest, n099, is +0.")


def test_snapshots_that_were_off_and_back_are_no_change_of_a_series_that_is_watched() -> None:
    """With them, questions seem to have moved by the outage's size times its share of the nights, here by -0.06 since n008."""
    values = scores(14, noise=0.01)
    values.iloc[:, 8:10] -= 0.2
    found = judge(values)
    assert (found.verdict, found.outage) == ("watch", ("n008", "n009"))
    assert found.top_changes is not None
    assert np.mean([one["shift"] for one in found.top_changes]) == pytest.approx(0, abs=0.02)


FLOOR = 0.005


def series(*off: tuple[int, int], by: float = -0.2) -> npt.NDArray[np.float64]:
    means = np.random.default_rng(1).normal(0, 0.01, 40)
    for first, length in off:
        means[first : first + length] += by
    return means


@pytest.mark.parametrize("length", range(1, LONGEST_OUTAGE + 1))
@pytest.mark.parametrize("by", [-0.2, 0.15])
def test_a_run_that_is_back_is_over(length: int, by: float) -> None:
    assert find_outages(series((20, length), by=by), FLOOR) == Outages(ended=tuple(range(20, 20 + length)))


def test_a_run_up_to_the_latest_snapshot_is_pending_until_it_is_too_long_for_an_outage() -> None:
    means = series((20, 20))
    for length in range(1, LONGEST_OUTAGE + 1):
        assert find_outages(means[: 20 + length], FLOOR) == Outages(pending=tuple(range(20, 20 + length)))
    for length in range(LONGEST_OUTAGE + 1, 20):
        assert find_outages(means[: 20 + length], FLOOR) == NO_OUTAGES


def test_snapshots_that_differ_less_than_the_rule_looks_at_are_never_off() -> None:
    assert find_outages(np.tile([0.0, 0.049], 20), FLOOR) == NO_OUTAGES


def test_many_runs_are_how_the_series_is_and_none_is_an_outage() -> None:
    """Left out as outages, the bad nights of a provider with two servers made the rest look so steady that 55 % of such series had drifted."""
    every = [(first, 1) for first in range(3, 40, 4)]
    assert find_outages(series(*every, by=-0.08), FLOOR) == Outages(pending=(39,))
    assert find_outages(series(*every[:2], by=-0.08), FLOOR) == Outages(ended=tuple(first for first, _ in every[:2]))


@pytest.mark.parametrize("visits", [(2, 12), (2, 20), (12, 36)])
def test_a_visit_of_the_level_that_the_series_began_with_or_has_now_is_no_outage(visits: tuple[int, ...]) -> None:
    """Left out, it made the level before or after look as if the series had never been anywhere else."""
    means = series((25, 15))
    for night in visits:
        means[night] += -0.2 if night < 25 else 0.2
    assert find_outages(means, FLOOR) == NO_OUTAGES


@pytest.mark.parametrize("before", range(1, 6))
@pytest.mark.parametrize("by", [-0.11, 0.11])
def test_what_lasts_from_the_first_snapshots_on_is_no_outage(before: int, by: float) -> None:
    """A drop on the second or third night made the nights before it an outage, for good."""
    means = np.where(np.arange(60) < before, 0.80, 0.80 + by)
    for many in range(before + LONGEST_OUTAGE + 1, 61):
        assert find_outages(means[:many], FLOOR) == NO_OUTAGES
    assert not {place for place in range(before) if place in find_outages(means[: before + 3], FLOOR).places}


@pytest.mark.thorough
@pytest.mark.parametrize("before", range(1, 10))
@pytest.mark.parametrize("by", [-0.1, 0.1])
def test_a_shift_on_any_of_the_first_ten_snapshots_is_found_within_ten_snapshots(before: int, by: float) -> None:
    """A shift within the baseline was never found."""
    means = np.random.default_rng(before).normal(0, 0.005, before + 10)
    means[before:] += by
    found = evidence(means, np.full(before + 10, 0.005), threshold=math.log10(20))
    assert found.highest is not None
    assert found.highest > math.log10(20)
    assert found.first == before
    assert (found.log10_e[: before + LONGEST_OUTAGE] < 0.5).all()
