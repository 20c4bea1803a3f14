"""Consistency over segments: the textbook analysis of variance, least squares, and coverage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import f

from dtef_pipeline.survey.boards.consistency import add_segment_cautions, estimate_consistency
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.metrics import js

Floats = npt.NDArray[np.float64]


def cells_of(scores: Floats, ceilings: Floats | None = None, models: list[str] | None = None) -> pd.DataFrame:
    """Cells of scores (models, segments, questions), NaN: unscored; ceilings (segments, questions) or (models, segments, questions)."""
    model, segment, question = (place.ravel() for place in np.indices(scores.shape))
    known = np.full(scores.shape, np.nan) if ceilings is None else np.broadcast_to(ceilings, scores.shape)
    names = np.array(models or [f"m{i}" for i in range(len(scores))])
    asked = dict.fromkeys(("question_id", "cluster"), question.astype(str))
    frame = pd.DataFrame({"model": names[model], "round": "S1", "segment": segment.astype(str), **asked})
    frame["model_variant"], frame["context_level"], frame["condition"] = frame["model"], "0", "c"
    return frame.assign(score=scores.ravel(), parsed_score=scores.ravel(), ceiling=known.ravel(), n_ok=1, n_answered=1, n=50)


def components(scores: Floats, ceilings: Floats | None = None, noise: Floats | None = None) -> pd.DataFrame:
    return estimate_consistency(cells_of(scores, ceilings), SurveyBoardOptions(), noise)


def test_a_balanced_layout_gives_the_textbook_analysis_of_variance() -> None:
    scores = np.array([[0.50, 0.62, 0.55, 0.71, 0.48], [0.60, 0.66, 0.67, 0.79, 0.53], [0.41, 0.57, 0.50, 0.68, 0.44]])
    row = components(scores[None]).iloc[0]
    segments, questions = scores.shape
    between = questions * ((scores.mean(axis=1) - scores.mean()) ** 2).sum() / (segments - 1)
    left = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    residual = (left**2).sum() / ((segments - 1) * (questions - 1))
    ratio, freedom = between / residual, (segments - 1, (segments - 1) * (questions - 1))
    low, high = ((ratio / f.ppf(place, *freedom) - 1) / questions * residual for place in (0.975, 0.025))
    assert row["segment_sd_true"] == pytest.approx(np.sqrt((between - residual) / questions), rel=1e-9)
    assert row["segment_sd_low"] == pytest.approx(np.sqrt(low), rel=1e-9)
    assert row["segment_sd_high"] == pytest.approx(np.sqrt(high), rel=1e-9)
    assert row["segment_p"] == pytest.approx(f.sf(ratio, *freedom), rel=1e-9)
    assert row["segment_sd_expected"] == pytest.approx(np.sqrt(residual / questions), rel=1e-9)
    assert row["consistency_note"].startswith("ceilings are unknown")


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


@pytest.mark.thorough
def test_segments_without_effects_are_distinguished_in_five_percent_of_sets() -> None:
    rng = np.random.default_rng(22)
    scores = 0.7 + 0.1 * rng.standard_normal((150, 1, 10)) + 0.08 * rng.standard_normal((150, 15, 10))
    assert (components(scores)["segment_p"] < 0.05).mean() <= 0.10  # 150 sets at a true 5 %: 99 runs in 100


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
