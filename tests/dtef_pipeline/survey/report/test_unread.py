"""Examples of responses that could not be read."""

from __future__ import annotations

import duckdb

from dtef_pipeline.survey.report.unread import examples
from tests.made.predictions import predictions_of
from tests.made.scores import scores_table, survey_rows
from tests.made.sections import cells


def test_examples_are_of_different_prompts_and_name_question_and_segment() -> None:
    """Both were draws of one prompt, and a question was an id of 36 characters."""
    unread = {"status": "unparseable", "score": 0.0, "reason": "no array"}
    asked = [("q0", "country:chile", 0), ("q0", "country:chile", 1), ("q0", "country:kenya", 0), ("q1", "country:peru", 0)]
    rows = [
        {"question_id": question, "question_order": int(question[1]), "segment": segment, "draw": draw, **unread}
        for question, segment, draw in asked
    ]
    scores = scores_table(rows)
    with duckdb.connect() as connection:
        connection.register("scores", scores)
        connection.register("predictions", predictions_of(scores, ["one", "two", "three", "four"]))
        without_texts = cells(examples(connection))
        connection.register("survey_responses", survey_rows({}, {}))
        found = cells(examples(connection))
    how = "S1, context 0, distribution/attribute-label, snapshot base"
    assert [row[4:] for row in found] == [
        [f"Question number 0? country:chile. {how}", "one"],
        [f"Question number 1? country:peru. {how}", "four"],
    ]
    assert [row[:4] for row in found] == [["m", "unparseable", "no array", "4"]] * 2
    assert without_texts[0][4].startswith("q0 country:chile")
