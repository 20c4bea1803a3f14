"""From predictions and survey to the table `scores`, and what `score` is for each status."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.survey.scoring.metrics import apply_policy, check_metric_name, compute_similarities
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.tables import METRICS, PREDICTIONS, SCORES, SURVEY_RESPONSES

KENYA = {"round": "GD4", "segment": "country:kenya"}
LIKERT = ["Disagree", "Neutral", "Agree", "Don't know"]


def survey_row(question: str, observed: list[float], **fields: Any) -> dict[str, Any]:
    k = len(observed)
    asked = {"question_id": question, "question_order": 3, "options": LIKERT[:k], "scale": "ordinal", "dont_know": [False] * k}
    return {
        **KENYA,
        "attribute": "country",
        "value": "Kenya",
        **asked,
        "observed": observed,
        "n": 57,
        "circular": False,
        **fields,
    }


def prediction(question: str, response: str | None, **fields: Any) -> dict[str, Any]:
    asked = {"snapshot": "base", "question_id": question, "context_level": "5", "model": "m", "draw": 0}
    return {**KENYA, **asked, "call_status": "answered", "response": response, "finish_reason": "stop", **fields}


def scores(predictions: list[dict[str, Any]], survey: list[dict[str, Any]], metric: str = "js") -> list[dict[str, Any]]:
    table = score_predictions(
        pa.Table.from_pylist(predictions, schema=PREDICTIONS),
        pa.Table.from_pylist(survey, schema=SURVEY_RESPONSES),
        metric=metric,
    )
    assert table.schema.equals(SCORES)
    return table.to_pylist()


SURVEY = [survey_row("q3", [0.2, 0.3, 0.5]), survey_row("q4", [0.4, 0.35, 0.15, 0.1], question_order=4)]


def test_an_answer_is_scored_beside_its_own_question_in_the_order_of_the_predictions() -> None:
    rows = scores([prediction("q4", "[45.2, 30.1, 15.5, 9.2]"), prediction("q3", "[50, 30, 20]")], SURVEY)
    assert [r["question_id"] for r in rows] == ["q4", "q3"]
    assert [r["question_order"] for r in rows] == [4, 3]
    assert rows[0]["score"] == rows[0]["js"] == pytest.approx(0.948749, abs=5e-7)
    assert rows[1]["js"] == pytest.approx(0.690459, abs=5e-7)
    assert rows[1]["predicted"] == pytest.approx([0.5, 0.3, 0.2])
    assert (rows[0]["value"], rows[0]["n"], rows[0]["metric"], rows[0]["context_level"]) == ("Kenya", 57, "js", "5")


def test_every_status_is_kept_with_its_reason_and_only_ok_has_metrics() -> None:
    rows = scores(
        [
            prediction("q3", "[50, 30, 20]"),
            prediction("q3", "I do not know the answer"),
            prediction("q3", "I'm sorry, I can't do that."),
            prediction("q3", "[50, 50]"),
            prediction("q3", None),
            prediction("q3", None, call_status="error", error="timeout after 60 s"),
            prediction("q3", None, call_status="missing", error="no previous round"),
            prediction("q3", None, call_status="missing"),
            prediction("q3", "[50, 30, 20]", finish_reason="content_filter"),
            prediction("q3", None, call_status="budget", error="max_cost_usd reached"),
        ],
        SURVEY,
    )
    assert [r["status"] for r in rows] == [
        "ok", "unparseable", "refused", "wrong_length", "unparseable", "error", "missing", "missing", "refused", "budget",
    ]  # fmt: skip
    assert [r["score"] for r in rows][1:] == [0.0, 0.0, 0.1, 0.0, None, None, None, 0.0, None]
    assert rows[5]["reason"] == "timeout after 60 s"
    assert rows[6]["reason"] == "no previous round"
    assert rows[9]["reason"] == "max_cost_usd reached"
    assert all(r["reason"] for r in rows)
    assert all(r[name] is None for r in rows[1:] for name in (*METRICS, "predicted"))


MIXED = [
    survey_row("two", [0.3, 0.7]),
    survey_row("three", [0.2, 0.3, 0.5], dont_know=[False, False, True]),
    survey_row("four", [0.4, 0.35, 0.15, 0.1], dont_know=[False, False, False, True], n=1),
    survey_row("nominal", [0.1, 0.2, 0.7], scale="nominal"),
    survey_row("all off", [0.5, 0.5], dont_know=[True, True]),
]
ANSWER_AND_BATTERY_COLUMNS = st.builds(
    prediction,
    st.sampled_from([row["question_id"] for row in MIXED]),
    st.sampled_from(
        ["[30, 70]", "[50, 30, 20]", "[10.5, 20, 30, 39.5]", "[0, 0]", "Agree: 20%\nDisagree: 50%\nNeutral: 30%", "no", None]
    ),
    call_status=st.sampled_from(["answered"] * 5 + ["error", "missing", "budget"]),
    finish_reason=st.sampled_from(["stop", "stop", "content_filter", None]),
)


@given(
    asked=st.lists(ANSWER_AND_BATTERY_COLUMNS, max_size=15),
    first=st.integers(0, 4),
    metric=st.sampled_from(["js", "tv", "emd_normalized"]),
)
def test_scores_of_many_are_those_of_each_prediction_alone(asked: list[dict[str, Any]], first: int, metric: str) -> None:
    survey = pa.Table.from_pylist(MIXED, schema=SURVEY_RESPONSES)
    table = pa.Table.from_pylist(asked, schema=PREDICTIONS)[first:]
    together = score_predictions(table, survey, metric=metric)
    alone = [score_predictions(table[row : row + 1], survey, metric=metric) for row in range(len(table))]
    assert together.to_pylist() == [row for one in alone for row in one.to_pylist()]


def test_nominal_questions_have_no_normalised_emd_and_no_score_under_it() -> None:
    survey = [survey_row("q1", [0.2, 0.3, 0.5], scale="nominal"), survey_row("q2", [0.2, 0.3, 0.5])]
    nominal, ordinal = scores([prediction("q1", "[5, 3, 2]"), prediction("q2", "[5, 3, 2]")], survey, "emd_normalized")
    assert (nominal["status"], nominal["emd_normalized"], nominal["score"]) == ("ok", None, None)
    assert nominal["emd"] == pytest.approx(0.4)
    assert ordinal["score"] == ordinal["emd_normalized"] == pytest.approx(0.7)


def test_positions_order_the_options_on_the_scale_of_ordered_metrics_alone() -> None:
    """The middle option was listed last and counted as the far end of the scale."""
    survey = [
        survey_row("listed last", [0.2, 0.3, 0.5], positions=[1.0, 2.0, 1.5], n=41),
        survey_row("in order", [0.2, 0.5, 0.3], positions=[1.0, 2.0, 3.0], n=41),
        survey_row("off the scale", [0.2, 0.5, 0.3], positions=[1.0, 7.0, None], n=41),
    ]
    answers = [prediction("listed last", "[50, 30, 20]"), prediction("in order", "[50, 20, 30]")]
    last, ordered, off = scores([*answers, prediction("off the scale", "[50, 20, 30]")], survey)
    for name in ("emd_normalized", "rps_corrected", "js", "tv", "l2_corrected"):
        assert last[name] == pytest.approx(ordered[name])
    assert last["emd_normalized"] == pytest.approx(1 - 0.3 / 2)
    assert last["emd"] != pytest.approx(ordered["emd"])  # as published: over the options as they are listed
    assert off["emd_normalized"] == pytest.approx(1 - (5 / 7 - 2 / 7))


def test_corrected_errors_need_n_and_go_by_the_effective_one() -> None:
    survey = [
        survey_row("unknown", [0.2, 0.3, 0.5], n=None),
        survey_row("weighted", [0.2, 0.3, 0.5], n=500, n_effective=11.0),
        survey_row("effective", [0.2, 0.3, 0.5], n=None, n_effective=11.0),
    ]
    unknown, *others = scores([prediction(q, "[50, 30, 20]") for q in ("unknown", "weighted", "effective")], survey)
    assert (unknown["l2_corrected"], unknown["rps_corrected"], unknown["n"]) == (None, None, None)
    assert unknown["score"] == pytest.approx(others[0]["score"])
    for row in others:
        assert (row["l2_corrected"], row["rps_corrected"]) == (pytest.approx(0.18 - 0.062), pytest.approx(0.18 - 0.041))
    assert len({row["truth_id"] for row in (unknown, *others)}) == 3


def test_predictions_that_fit_no_row_of_the_survey_are_named() -> None:
    lost = [prediction("q9", "[1, 1]"), prediction("q3", "[1, 1, 1]"), prediction("q8", "[1, 1]", segment="x:y")]
    with pytest.raises(DtefError, match=r"without a survey row: GD4/country:kenya/q9, GD4/x:y/q8; ingest"):
        scores(lost, SURVEY)
    with pytest.raises(DtefError, match=r"GD4/country:kenya/q3; allowed"):
        scores([prediction("q3", "[1, 1, 1]")], [SURVEY[0], SURVEY[0]])
    with pytest.raises(DtefError, match=r"observed distributions .*: GD4/country:kenya/q3"):
        scores([prediction("q3", "[1, 1, 1]")], [survey_row("q3", [0.5, 0.5], options=LIKERT[:3])])


def test_an_unknown_call_status_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DtefError, match=r"call_status: got \['done'\]; allowed: answered, error, missing, budget"):
        scores([prediction("q3", "[1, 1, 1]", call_status="done")], SURVEY)


def test_score_of_a_distance_is_a_similarity() -> None:
    assert apply_policy(["ok", "wrong_length"], [0.25, math.nan], "tv").tolist() == pytest.approx([0.75, 0.1])
    assert apply_policy(["ok"], [0.0], "mae").tolist() == pytest.approx([1])


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=f"no metric 'kl'; allowed: {', '.join(METRICS)}"):
        check_metric_name("kl")
    with pytest.raises(ConfigError, match=r"no status 'fine'; allowed: ok, unparseable"):
        apply_policy(["fine"], [1.0], "js")


def test_similarities_of_distances_are_one_minus_them_and_scales_are_respected() -> None:
    p, q = [[0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.1, 0.4]], [[0.2, 0.3, 0.5, 0.0], [0.2, 0.3, 0.1, 0.4]]
    ranks = np.array([0, 1, 2, -1])
    found = compute_similarities(p, q, ordinal=True, ranks=ranks)
    assert tuple(found) == METRICS
    assert found["tv"] == pytest.approx([0.7, 1.0])
    assert found["mae"] == pytest.approx([0.85, 1.0])
    assert found["emd_normalized"] == pytest.approx([0.7, 1.0])
    assert compute_similarities(p, q, ordinal=True, ranks=np.arange(4))["emd_normalized"] == pytest.approx([0.8, 1.0])
    assert np.isnan(compute_similarities(p, q, ordinal=False, ranks=ranks)["emd_normalized"]).all()
