"""Consistency where questions come in batteries and the same people answer all of them: the textbook, and sets without differences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f

from dtef_pipeline.statistics.shared_noise import CORRELATION
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.consistency import estimate_consistency
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.dtef_pipeline.survey.boards.test_consistency import Floats, cells_of

OPTIONS = SurveyBoardOptions()


def in_batteries(scores: Floats, sizes: list[int], noise: Floats | None = None) -> pd.DataFrame:
    """Components of scores (models, segments, questions) whose questions are in batteries of these sizes."""
    cells = cells_of(scores)
    battery = np.repeat(np.arange(len(sizes)), sizes)[cells["cluster"].astype(int)]
    return estimate_consistency(cells.assign(cluster=battery.astype(str)), OPTIONS, noise)


def drawn(sets: int, segments: int, sizes: list[int], sd: float, rng: np.random.Generator) -> Floats:
    """Scores with a random effect of each battery in each segment, as large as the rest."""
    questions = sum(sizes)
    of_battery = np.repeat(rng.standard_normal((sets, segments, len(sizes))), sizes, axis=2)
    rest = 0.05 * of_battery + 0.05 * rng.standard_normal((sets, segments, questions))
    return 0.7 + 0.1 * rng.standard_normal((sets, 1, questions)) + sd * rng.standard_normal((sets, segments, 1)) + rest


def test_equal_batteries_give_the_textbook_analysis_of_their_means() -> None:
    segments, batteries, size = 4, 6, 3
    scores = drawn(1, segments, [size] * batteries, 0.03, np.random.default_rng(3))
    row = in_batteries(scores, [size] * batteries).iloc[0]
    means = scores[0].reshape(segments, batteries, size).mean(axis=2)
    between = batteries * means.mean(axis=1).var(ddof=1)
    left = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    freedom = (segments - 1, (segments - 1) * (batteries - 1))
    residual = (left**2).sum() / freedom[1]
    ratio = between / residual
    low, high = (max((ratio / f.ppf(place, *freedom) - 1) / batteries * residual, 0) for place in (0.975, 0.025))
    assert row["segment_sd_true"] == pytest.approx(np.sqrt(max((between - residual) / batteries, 0)), rel=1e-9)
    assert (row["segment_sd_low"], row["segment_sd_high"]) == pytest.approx((np.sqrt(low), np.sqrt(high)), rel=1e-9)
    assert row["segment_p"] == pytest.approx(f.sf(ratio, *freedom), rel=1e-9)
    assert row["segment_sd_expected"] == pytest.approx(np.sqrt(residual / batteries), rel=1e-9)


@pytest.mark.thorough
def test_batteries_are_reported_from_segments_and_the_interval_covers() -> None:
    """With questions taken as independent a quarter of the sets without differences was significant."""
    rng = np.random.default_rng(24)
    sizes, sets, sd = [9, 7, 6, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1], 100, 0.03
    same = drawn(sets, 10, sizes, 0.0, rng)
    assert (in_batteries(same, sizes)["segment_p"] < 0.05).mean() <= 0.11  # 100 sets at a true 5 %: 99 runs in 100
    assert (in_batteries(same, [1] * sum(sizes))["segment_p"] < 0.05).mean() > 0.2
    found = in_batteries(drawn(sets, 10, sizes, sd, rng), sizes)
    covered = (found["segment_sd_low"] <= sd) & (sd <= found["segment_sd_high"])
    assert covered.mean() >= 0.88
    assert np.sqrt((found["segment_sd_true"] ** 2).mean()) == pytest.approx(sd, rel=0.15)


def test_what_the_same_people_make_is_no_difference_between_segments() -> None:
    rng = np.random.default_rng(6)
    scores, sizes = drawn(1, 8, [2] * 10, 0.08, rng), [2] * 10
    spread = rng.standard_normal((8 * 20, 200))
    noise = 0.05 * (spread - spread.mean(axis=1, keepdims=True))
    alone, people = in_batteries(scores, sizes).iloc[0], in_batteries(scores, sizes, noise).iloc[0]
    # Twenty questions with a standard deviation of .05, each beside 18 of other batteries.
    shared = CORRELATION * 20 * 18 * 0.05**2 / 20**2
    assert people["segment_sd_true"] ** 2 == pytest.approx(alone["segment_sd_true"] ** 2 - shared, abs=0.2 * shared)
    assert people["segment_p"] > alone["segment_p"]


def test_a_marginal_that_contains_the_segments_has_no_true_spread() -> None:
    scores = drawn(2, 5, [2] * 6, 0.03, np.random.default_rng(7))
    cells = cells_of(scores, models=["gpt", POPULATION_MARGINAL])
    found = estimate_consistency(cells, OPTIONS).set_index("model")
    marginal, model = found.loc[POPULATION_MARGINAL], found.loc["gpt"]
    assert marginal[["segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p"]].isna().all()
    assert marginal["segment_sd_expected"] > 0
    assert "contains the segment's own answers" in marginal["consistency_note"]
    assert model.notna().all()


def test_a_round_of_too_few_batteries_says_nothing_beside_another_one() -> None:
    rng = np.random.default_rng(11)
    one, few = (cells_of(drawn(1, 4, [1] * many, 0.03, rng)) for many in (6, 4))
    few = few.assign(round="S2", cluster="S2-" + few["cluster"].astype(str), question_id="S2-" + few["question_id"].astype(str))
    together = estimate_consistency(pd.concat([one, few], ignore_index=True), OPTIONS).iloc[0]
    alone = estimate_consistency(one, OPTIONS).iloc[0]
    names = ["segment_sd_expected", "segment_sd_true", "segment_p"]
    assert together[names].to_numpy(float) == pytest.approx(alone[names].to_numpy(float))
