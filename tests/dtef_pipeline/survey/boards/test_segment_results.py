"""Intervals of a segment's score, over its questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.survey.boards.segment_results import segment_results
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
        for row in segment_results(scores_table(rows), survey).to_pylist()
        if row["targets"] == "clean" and all(row[name] == value for name, value in wanted.items())
    ]
    return found


def test_interval_is_that_of_drawing_questions_anew() -> None:
    scores = np.random.default_rng(3).beta(8, 3, size=40).tolist()
    row = result(asked(scores))
    drawn = np.random.default_rng(4)
    means = sorted(np.mean(drawn.choice(scores, size=40)) for _ in range(4_000))
    assert row["score_low"] == pytest.approx(means[100], abs=0.006)
    assert row["score_high"] == pytest.approx(means[3_900], abs=0.006)
    # a little wider than the plain percentiles: 40 questions tell their own spread only so well
    assert row["score_high"] - row["score_low"] > means[3_900] - means[100]


def test_fewer_than_five_questions_have_no_interval() -> None:
    assert result(asked([0.1, 0.9, 0.4, 0.6]))["score_low"] is None
    row = result(asked([0.1, 0.9, 0.4, 0.6, 0.5]))
    assert row["score_low"] < row["score"] < row["score_high"]


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


def test_unscored_answers_take_no_part() -> None:
    scored = asked([0.2, 0.4, 0.6, 0.8, 0.7, 0.5])
    failed = [{"question_id": f"x{place}", "score": None, "status": "error"} for place in range(3)]
    with_failed, alone = result(scored + failed), result(scored)
    assert (with_failed["score"], with_failed["n_scored"]) == (pytest.approx(alone["score"]), 6)
    assert result(failed)["score_low"] is None
    assert with_failed["score_low"] == pytest.approx(alone["score_low"], abs=0.08)


def test_draws_of_a_question_are_one_question() -> None:
    once = asked([0.2, 0.4, 0.6, 0.8, 0.7, 0.5])
    thrice = [{**row, "draw": draw} for row in once for draw in range(3)]
    first, third = result(once), result(thrice)
    assert (first["score_low"], first["score_high"]) == pytest.approx((third["score_low"], third["score_high"]))


def test_other_segments_do_not_move_an_interval() -> None:
    kenya = asked([0.2, 0.4, 0.6, 0.8, 0.7, 0.5])
    chile = asked([0.9] * 30, segment="country:chile", value="Chile")
    both, alone = result(kenya + chile, segment="country:kenya"), result(kenya)
    assert [both[end] for end in ("score_low", "score_high")] == pytest.approx(
        [alone[end] for end in ("score_low", "score_high")]
    )
    assert both["n_scored"] == alone["n_scored"]
    assert result(kenya + chile, segment="country:chile")["score_low"] == pytest.approx(0.9)


def test_no_scores_give_no_rows() -> None:
    assert len(segment_results(scores_table([]), NO_SURVEY)) == 0
