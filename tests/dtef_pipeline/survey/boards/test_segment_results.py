"""Intervals of a segment's score, over its questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.survey.boards.segment_results import compute_segment_results
from dtef_pipeline.survey.tables import SURVEY_RESPONSES
from tests.made.scores import scores_table, survey_rows

Row = dict[str, Any]
NO_SURVEY = SURVEY_RESPONSES.empty_table()


def asked(scores: list[float], **given: Any) -> list[Row]:
    """A question each."""
    return [{"question_id": f"q{place:02}", "score": score, **given} for place, score in enumerate(scores)]


def result(rows: list[Row], survey: pa.Table = NO_SURVEY, **wanted: Any) -> Row:
    (found,) = [
        row
        for row in compute_segment_results(scores_table(rows), survey).to_pylist()
        if row["targets"] == "clean" and all(row[name] == value for name, value in wanted.items())
    ]
    return found


def test_interval_is_that_of_drawing_questions_again() -> None:
    scores = np.random.default_rng(3).beta(8, 3, size=40).tolist()
    row = result(asked(scores))
    drawn = np.random.default_rng(4)
    means = sorted(np.mean(drawn.choice(scores, size=40)) for _ in range(4_000))
    assert row["score_low"] == pytest.approx(means[100], abs=0.006)
    assert row["score_high"] == pytest.approx(means[3_900], abs=0.006)
    # a little wider than the plain percentiles: 40 questions tell their own spread only so well
    assert row["score_high"] - row["score_low"] > means[3_900] - means[100]


def test_batteries_are_drawn_whole_each_segments_own() -> None:
    # Questions of a battery counted as independent: the interval was half as wide as it had to be.
    scores = np.random.default_rng(5).uniform(0.3, 0.9, size=8).tolist()
    rows = asked([score for score in scores for _ in range(4)])
    elsewhere = {"segment": "country:chile", "value": "Chile"}
    survey = survey_rows(*({"question_id": row["question_id"], "battery": f"b{at // 4}"} for at, row in enumerate(rows)))
    found = result(rows + [{**row, **elsewhere} for row in rows], survey, segment="country:kenya")
    ends = ["score_low", "score_high"]
    assert [found[end] for end in ends] == pytest.approx([result(asked(scores))[end] for end in ends])
    assert result(rows)["score_low"] > found["score_low"]
    few = survey_rows(*({"question_id": row["question_id"], "battery": f"b{at // 8}"} for at, row in enumerate(rows)))
    assert result(rows, few)["score_low"] is None, "32 questions in 4 batteries"


def surveyed(**given: Any) -> tuple[list[Row], pa.Table]:
    """Forty read predictions, and the survey they are scored against."""
    answers = np.random.default_rng(6).dirichlet([4, 3, 2], size=40).tolist()
    rows = asked([0.8] * 20 + [0.7] * 20, predicted=[0.5, 0.3, 0.2], **given)
    return rows, survey_rows(
        *({"question_id": row["question_id"], "observed": one, **given} for row, one in zip(rows, answers, strict=True))
    )


def test_people_who_answer_every_question_widen_an_interval() -> None:
    # It went by batteries alone, as if every question had people of its own.
    rows, survey = surveyed()
    alone, with_people = result(rows), result(rows, survey)
    assert with_people["score"] == alone["score"]
    assert with_people["score_low"] < alone["score_low"] < alone["score_high"] < with_people["score_high"]
    assert result(rows[:4], survey)["score_low"] is None, "4 questions have no interval"


def test_predictions_that_do_not_fit_the_survey_have_no_noise() -> None:
    # A survey that was ingested anew with other options, before its predictions were scored anew.
    rows, survey = surveyed()
    unfit = [{**row, "predicted": [0.4, 0.3, 0.2, 0.1]} for row in rows]
    unread = [{**row, "predicted": None, "status": "unparseable"} for row in rows]
    unknown = [{**row, "question_id": f"x{row['question_id']}"} for row in rows]
    for some in (unfit, unread, unknown):
        assert result(some, survey)["score_low"] == pytest.approx(result(some)["score_low"])
