"""The simulated worlds that intervals and tests are judged by are what they say: real tables, known truths, the same people."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dtef_pipeline.survey.model import Answer, Question, Segment
from dtef_pipeline.survey.model import Survey as ReadSurvey
from dtef_pipeline.survey.observations import observe
from dtef_pipeline.survey.scoring.score import score_predictions
from tests.made.survey_boards import predictions_of
from tests.made.world_tables import question_texts, scores, survey_responses
from tests.made.worlds import Design, Survey, World

SMALL = Design(batteries=(3, 1, 2), countries=(9, 14, 30, 80), ages=3, draws=2, unread=0.2, dont_know=0.2)


def as_read(world: World, survey: Survey) -> ReadSurvey:
    """The survey as an adapter would have read it."""
    texts = question_texts(len(survey.k))
    questions = [
        Question(f"q{q}", texts[q], tuple(f"option {place}" for place in range(k))) for q, k in enumerate(survey.k.tolist())
    ]
    segments = [
        Segment(name, kind, name, int(n), ((kind, name),))
        for name, kind, n in zip(world.names, world.attributes, survey.n, strict=True)
    ]
    answers = [
        Answer(name, question.id, tuple(100 * survey.observed[q, s, : survey.k[q]]), int(survey.n[s]), "made", None)
        for q, question in enumerate(questions)
        for s, name in enumerate(world.names)
    ]
    return ReadSurvey("W1", "made", "made", "made", tuple(questions), tuple(segments), tuple(answers))


def test_the_tables_are_those_that_the_pipeline_makes_of_the_same_answers() -> None:
    world = World(SMALL)
    survey = world.survey(np.random.default_rng(1))
    made, expected = survey_responses(world, survey), observe(as_read(world, survey)).responses
    order = [("question_id", "ascending"), ("segment", "ascending")]
    made, expected = made.sort_by(order), expected.sort_by(order)
    for name in (
        "round",
        "segment",
        "attribute",
        "question_id",
        "question_text",
        "options",
        "n",
        "circular",
        "leave_one_out_n",
    ):
        assert made[name].to_pylist() == expected[name].to_pylist(), name
    for name in ("observed", "population", "leave_one_out_marginal"):
        for ours, theirs in zip(made[name].to_pylist(), expected[name].to_pylist(), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-12)


def test_the_scores_are_those_of_the_same_answers_as_texts() -> None:
    world = World(SMALL)
    survey = world.survey(np.random.default_rng(2))
    made = scores(world, survey)
    texts = [json.dumps([100 * p for p in row]) if row else "no idea" for row in made["predicted"].to_pylist()]
    predictions = predictions_of(made, texts).to_pylist()
    predictions = [row | {"call_status": "answered"} for row in predictions]
    schema = predictions_of(made.slice(0, 0), []).schema
    expected = score_predictions(type(made).from_pylist(predictions, schema=schema), survey_responses(world, survey))
    assert made["status"].to_pylist() == expected["status"].to_pylist()
    assert set(made["status"].to_pylist()) == {"ok", "unparseable"}
    for name in ("score", "js", "emd", "tv", "top_hit", "l2_corrected", "rps_corrected"):
        ours, theirs = (np.array(table[name].to_pylist(), dtype=np.float64) for table in (made, expected))
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=name)
