"""Consistency over segments: the textbook analysis of variance, least squares, and coverage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import f

from dtef_pipeline.statistics.cluster_robust import CORRELATION
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.segment_gaps import add_segment_cautions, estimate_consistency
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.metrics import js
from tests.made.scores import as_cells

Floats = npt.NDArray[np.float64]
OPTIONS = SurveyBoardOptions()


def cells_of(scores: Floats, ceilings: Floats | None = None, models: list[str] | None = None) -> pd.DataFrame:
    """Cells of scores (models, segments, questions), NaN: unscored; ceilings (segments, questions) or (models, segments, questions)."""
    model, segment, question = (place.ravel() for place in np.indices(scores.shape))
    known = np.full(scores.shape, np.nan) if ceilings is None else np.broadcast_to(ceilings, scores.shape)
    names = np.array(models or [f"m{i}" for i in range(len(scores))])
    frame = pd.DataFrame({"model": names[model], "segment": segment.astype(str), "question_id": question.astype(str)})
    return as_cells(frame, score=scores.ravel(), ceiling=known.ravel())


def components(scores: Floats, ceilings: Floats | None = None, noise: Floats | None = None) -> pd.DataFrame:
    return estimate_consistency(cells_of(scores, ceilings), OPTIONS, noise)


def test_question_effects_and_a_shift_of_all_scores_change_nothing() -> None:
    rng = np.random.default_rng(4)
    scores = rng.random((1, 6, 9))
    shifted = scores + rng.random(9) + 3
    columns = ["segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p"]
    assert components(shifted)[columns].to_numpy() == pytest.approx(components(scores)[columns].to_numpy(), rel=1e-9)
    assert 10 * components(scores)[columns[:3]].to_numpy() == pytest.approx(components(10 * scores)[columns[:3]].to_numpy())


def test_a_known_component_is_recovered_and_covered() -> None:
    rng = np.random.default_rng(21)
    sets, segments, questions, sd = 40, 20, 15, 0.04
    scores = 0.7 + 0.1 * rng.standard_normal((sets, 1, questions)) + sd * rng.standard_normal((sets, segments, 1))
    scores = scores + 0.08 * rng.standard_normal((sets, segments, questions))
    scores[:, rng.random((segments, questions)) < 0.3] = np.nan
    found = components(scores)
    assert np.sqrt((found["segment_sd_true"] ** 2).mean()) == pytest.approx(sd, rel=0.08)
    covered = (found["segment_sd_low"] <= sd) & (sd <= found["segment_sd_high"])
    assert covered.mean() >= 0.89
    raw = np.nanmean(scores, axis=2).std(axis=1, ddof=1)
    assert (raw**2).mean() == pytest.approx(
        (found["segment_sd_true"] ** 2 + found["segment_sd_expected"] ** 2).mean(), rel=0.05
    )


def sampled(
    sets: int, sizes: npt.NDArray[np.int64], strength: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Scores, ceilings and noise of groups that are equal but for their sizes, under a model off the truth by a Dirichlet of `strength`."""
    shape = (sets, len(sizes), 30)
    truth = rng.dirichlet(np.full(4, 1.5), (sets, 1, 30))
    gamma = rng.standard_gamma(strength * truth + 0.01)
    said = np.broadcast_to(gamma / gamma.sum(axis=-1, keepdims=True), (*shape, 4))
    size = np.broadcast_to(sizes[:, None], shape)
    observed = rng.multinomial(size, np.broadcast_to(truth, (*shape, 4))) / size[..., None]
    again = rng.multinomial(size, observed, size=(10, *shape)) / size[..., None]
    score, perfect = (_js(one, observed) for one in (said, np.broadcast_to(truth, (*shape, 4))))
    moved = _js(np.broadcast_to(said, again.shape), again).reshape(10, -1).T
    ceilings = np.broadcast_to(perfect.mean(axis=(0, 2))[:, None], shape)
    return score, ceilings, moved - moved.mean(axis=1, keepdims=True)


def _js(predicted: Floats, observed: Floats) -> Floats:
    return js(predicted.reshape(-1, 4), observed.reshape(-1, 4)).reshape(observed.shape[:-1])


@pytest.mark.thorough
@pytest.mark.parametrize("strength", [10, 100])
def test_sample_size_alone_is_no_difference_between_segments(strength: float) -> None:
    rng = np.random.default_rng(23)
    sizes = np.array([15, 18, 22, 27, 33, 40, 50, 62, 80, 110, 160, 250, 400])
    scores, ceilings, noise = sampled(100, sizes, strength, rng)
    adjusted, raw = components(scores, ceilings, noise), components(scores, noise=noise)
    assert (adjusted["segment_p"] < 0.05).mean() <= 0.11  # 100 sets at a true 5 %: 99 runs in 100
    assert adjusted["segment_sd_true"].mean() < 0.01
    assert (raw["segment_p"] < 0.05).mean() > 0.5


def test_what_cannot_be_reported_is_null_and_says_why() -> None:
    rng = np.random.default_rng(1)
    few = components(rng.random((1, 6, 4))).iloc[0]
    one = components(rng.random((1, 1, 9))).iloc[0]
    apart = np.full((1, 2, 10), np.nan)
    apart[0, 0, :5], apart[0, 1, 5:] = rng.random((2, 5))
    constant = components(np.full((1, 4, 8), 0.5)).iloc[0]
    for row, note in (
        (few, "no estimate and no test: 4 batteries, at least 5 are needed"),
        (one, "one segment"),
        (components(apart).iloc[0], "too few segments and shared questions"),
        (constant, "too few segments and shared questions"),
    ):
        assert row[["segment_sd_expected", "segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p"]].isna().all()
        assert row["consistency_note"].startswith(note)
    nothing = components(np.full((1, 4, 8), np.nan))
    assert len(nothing) == 0
    assert "segment_sd_true" in nothing.columns


def test_models_asked_alike_and_models_asked_otherwise_stand_in_one_table() -> None:
    rng = np.random.default_rng(6)
    scores = rng.random((3, 7, 9))
    scores[2, 3:] = np.nan
    together = components(scores)
    for place in range(3):
        alone = components(scores[place : place + 1])
        columns = together.columns.difference(["model", "model_variant"])
        pd.testing.assert_frame_equal(together.loc[[place], columns].reset_index(drop=True), alone[columns])


def test_a_model_with_a_score_in_fewer_segments_than_others_has_a_note() -> None:
    """A model with 59 segments was the most even one, before others with 106, without a word."""
    frame = pd.DataFrame(
        {"context_level": "0", "condition": "c", "n_segments": [59, 106], "consistency_note": [None, "a caution"]}
    )
    few, many = add_segment_cautions(frame)
    assert "59 of 106 segments" in few
    assert many == "a caution"


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


@pytest.mark.parametrize("size", [1, 3])
def test_equal_batteries_give_the_textbook_analysis_of_their_means(size: int) -> None:
    segments, batteries = 4, 6
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
    assert row["consistency_note"].startswith("ceilings are unknown")


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
