"""Segments that are predicted worse or better than the others of their attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import t

from dtef_pipeline.statistics.cluster_robust import CORRELATION
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards.schemas import SEGMENT_GAPS
from dtef_pipeline.survey.boards.segment_gaps import add_levels, compute_segment_gaps
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.freedom import freedom_of
from tests.made.scores import as_cells

Floats = npt.NDArray[np.float64]
OPTIONS = SurveyBoardOptions()
TESTED = ["low", "high", "p", "p_adjusted"]


def cells_of(scores: Floats, sizes: list[int], **given: Any) -> pd.DataFrame:
    """Cells of scores (segments, questions), NaN: none, with ceilings of 1; `sizes`: questions of each battery."""
    segment, question = (place.ravel() for place in np.indices(scores.shape))
    battery = np.repeat(np.arange(len(sizes)), sizes)[question]
    frame = pd.DataFrame({"segment": [f"country:c{place}" for place in segment], "question_id": question.astype(str)})
    frame = frame.assign(model="m", attribute="country", cluster=battery.astype(str), ceiling=1.0, score=scores.ravel())
    return as_cells(frame, **given)


def rows_of(scores: Floats, sizes: list[int], **given: Any) -> pd.DataFrame:
    return compute_segment_gaps(cells_of(scores, sizes, **given), OPTIONS).set_index("segment").sort_index()


def test_a_deviation_is_the_mean_difference_to_the_other_segments_on_the_same_questions() -> None:
    scores = np.array([[0.5, 0.6, 0.7, 0.4, 0.5], [0.8, 0.5, 0.9, 0.6, 0.7], [0.6, np.nan, 0.5, 0.8, 0.6]])
    rows = rows_of(scores, [1] * 5)
    first = np.mean([0.5 - 0.7, 0.6 - 0.5, 0.7 - 0.7, 0.4 - 0.7, 0.5 - 0.65])
    assert rows.loc["country:c0", "deviation"] == pytest.approx(first)
    assert rows.loc["country:c0", ["score", "expected"]].tolist() == pytest.approx([0.54, 0.54 - first])
    assert rows["n_pairs"].tolist() == [5, 5, 4]


def test_interval_and_p_are_those_of_the_textbook_where_all_were_asked_alike() -> None:
    """Two-way analysis of variance: pooled mean square of the rest, (segments - 1) (questions - 1) degrees of freedom."""
    segments, questions = 4, 7
    scores = np.random.default_rng(3).random((segments, questions))
    rows = rows_of(scores, [1] * questions)
    left = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    free = (segments - 1) * (questions - 1)
    se = np.sqrt((left**2).sum() / free / questions * segments / (segments - 1))
    off = (scores.mean(axis=1) - scores.mean()) * segments / (segments - 1)
    assert rows["deviation"].to_numpy() == pytest.approx(off)
    assert (rows["high"] - rows["deviation"]).to_numpy() == pytest.approx(t.ppf(0.975, free) * se)
    assert rows["p"].to_numpy() == pytest.approx(2 * t.sf(np.abs(off) / se, free))
    assert (rows["p_adjusted"] >= rows["p"]).all()


def test_segments_that_share_no_question_with_another_say_so() -> None:
    scores = np.full((3, 12), np.nan)
    scores[0, :6] = scores[1, :6] = np.random.default_rng(4).random((1, 6))
    scores[2, 6:] = 0.5
    rows = rows_of(scores, [1] * 12)
    assert rows["deviation"].notna().tolist() == [True, True, False]
    alone = rows.loc["country:c2"]
    assert (alone["score"], alone["n_pairs"], alone["verdict"]) == (0.5, 6, "not tested")
    assert "same questions" in alone["note"]


def test_scores_above_the_ceiling_are_not_tested() -> None:
    """A model that knows the observed answers had segments that were `worse`, and expected scores above 1."""
    scores = 0.99 - 0.02 * np.random.default_rng(4).random((4, 8))
    ceilings = np.repeat([0.97, 0.9, 0.96, 0.6], 8)
    rows = rows_of(scores, [1] * 8, ceiling=ceilings)
    assert set(rows["verdict"]) == {"not tested"}
    assert rows[TESTED].isna().all(axis=None)
    assert (rows["expected"] <= 1).all()
    assert rows["note"].str.contains("ceiling").all()


def naive_variances(scores: Floats, sizes: list[int], noise: Floats) -> Floats:
    """(segments,) by plain loops; `noise` (segments, questions, replicates), in batteries of these sizes."""
    segments, battery = len(scores), np.repeat(np.arange(len(sizes)), sizes)
    off, moved = (values - (values.sum(axis=0) - values) / (segments - 1) for values in (scores, noise))
    seen, sample, shared = np.zeros(segments), np.zeros(segments), np.zeros(segments)
    for one in range(segments):
        left_out = [off[one][battery != place].mean() for place in range(len(sizes))]
        seen[one] = (len(sizes) - 1) / len(sizes) * sum((mean - off[one].mean()) ** 2 for mean in left_out)
        spread = np.sqrt((moved[one] ** 2).mean(axis=1))
        sample[one] = (spread**2).sum() / len(battery) ** 2
        pairs = (spread[a] * spread[b] for a in range(len(battery)) for b in range(len(battery)) if battery[a] != battery[b])
        shared[one] = CORRELATION * sum(pairs) / len(battery) ** 2
    return seen.mean() - sample.mean() + sample + shared


def test_variances_agree_with_plain_loops_on_lopsided_batteries() -> None:
    rng, sizes = np.random.default_rng(5), [4, 2, 1, 1, 1, 1]
    scores = rng.random((5, 10))
    noise = 0.05 * rng.standard_normal((5, 10, 20)) * np.array([0.2, 0.5, 1, 1.5, 2])[:, None, None]
    cells = cells_of(scores, sizes)
    rows = compute_segment_gaps(cells, OPTIONS, noise.reshape(-1, 20)).set_index("segment").sort_index()
    free = freedom_of(sizes) * 4
    se = (rows["high"] - rows["deviation"]).to_numpy() / t.ppf(0.975, free)
    assert se**2 == pytest.approx(naive_variances(scores, sizes, noise), rel=1e-9)


def test_what_a_small_sample_costs_is_given_back_as_far_as_the_prediction_is_near() -> None:
    """Distances of .4 from the truth and of .3 (or .1) from the sample, added in squares."""
    cells = cells_of(np.array([[0.5, 0.5], [0.5, 0.5]]), [1, 1]).assign(ceiling=[0.7, 0.7, 0.9, 0.9])
    assert add_levels(cells, "js")["level"].tolist() == pytest.approx([0.5 + 0.4 * 0.3] * 2 + [0.5 + 0.4 * 0.1] * 2)
    assert add_levels(cells, "cosine")["level"].tolist() == pytest.approx([0.8, 0.8, 0.6, 0.6])
    perfect = cells.assign(score=cells["ceiling"], parsed_score=cells["ceiling"])
    assert add_levels(perfect, "js")["level"].tolist() == pytest.approx([1] * 4)


def test_two_segments_are_one_test() -> None:
    rows = rows_of(np.random.default_rng(2).random((2, 9)), [1] * 9)
    assert rows["deviation"].sum() == pytest.approx(0)
    assert rows["p_adjusted"].tolist() == rows["p"].tolist()


def test_rows_that_cannot_be_tested_say_why() -> None:
    scores = np.random.default_rng(4).random((3, 9))
    for scored, given, reason in (
        (scores, {"model": POPULATION_MARGINAL}, "contains the segment's own answers"),
        (scores[:2], {"model": LEAVE_ONE_OUT}, "predicted by the other's answers"),
        (scores, {"ceiling": np.nan}, "ceilings are unknown"),
    ):
        rows = rows_of(scored, [1] * 9, **given)
        assert rows[TESTED].isna().all(axis=None)
        assert set(rows["verdict"]) == {"not tested"}
        assert rows["note"].str.contains(reason).all()
        assert rows["deviation"].notna().all()
    few = rows_of(scores, [3, 3, 1, 2])
    assert few[TESTED].isna().all(axis=None)
    assert few["note"].str.contains("4 batteries, at least 5 are needed").all()


def test_responses_that_could_not_be_read_are_no_want_of_knowledge() -> None:
    scores = 0.7 + 0.02 * np.random.default_rng(6).standard_normal((3, 12))
    cells = cells_of(scores, [1] * 12)
    often = (cells["segment"] == "country:c0").to_numpy()
    cells = cells.assign(score=np.where(often, cells["score"] / 2, cells["score"]), n_answered=np.where(often, 2, 1))
    rows = compute_segment_gaps(cells, OPTIONS).set_index("segment").sort_index()
    assert rows["verdict"].tolist()[0] == "worse"
    assert rows["parsed_verdict"].tolist() == ["no clear difference"] * 3


def test_the_table_has_the_published_columns() -> None:
    made = compute_segment_gaps(cells_of(np.random.default_rng(7).random((3, 6)), [1] * 6), OPTIONS)
    assert pa.Table.from_pandas(made, schema=SEGMENT_GAPS, preserve_index=False)["targets"].to_pylist() == ["clean"] * 3
    for nothing in (made.head(0), compute_segment_gaps(cells_of(np.full((2, 3), np.nan), [1] * 3), OPTIONS)):
        assert list(nothing.columns) == SEGMENT_GAPS.names
    alone = cells_of(np.full((1, 6), 0.5), [1] * 6)
    assert len(compute_segment_gaps(alone, OPTIONS)) == 0
