"""The table of questions, from frames written by hand."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.survey.report.questions import questions
from tests.made.sections import OTHERS, cells, frame


def test_a_question_is_judged_by_its_models_and_its_room_by_the_references(connection: duckdb.DuckDBPyConnection) -> None:
    rows = frame(
        {"model": "a", "score": 0.9, "ceiling": 0.95},
        {"model": "b", "score": 0.7, "ceiling": 0.95},
        {"model": OTHERS, "score": 0.85, "ceiling": 0.95},
    ).assign(round="S1", question_id="q0")
    gap = {
        "attribute": "country",
        "best_segment": "country:chile",
        "worst_segment": "country:kenya",
        "round": "S1",
        "question_id": "q0",
    }
    gaps = frame(
        {"model": "a", "excess": 0.1, "gap": 0.2, "expected_gap": 0.1, **gap},
        {"model": "b", "excess": 0.3, "gap": 0.42, "expected_gap": 0.12, **gap},
        {"model": "b", "excess": np.nan, **gap},
        {"model": OTHERS, "excess": 0.7, "gap": 0.8, "expected_gap": 0.1, **gap},  # of a baseline: not what is asked here
    )
    (row,) = cells(questions(connection, rows, gaps))
    means = ["0.8000 2 models", "0.9000 a", "0.7000 b"]
    assert row[:9] == ["S1", "Question number 0?", "10 of 2", *means, "0.850", "0.950", "0.100"]
    assert row[9].split(" ", 1)[0] == "+0.3000"
    assert "gap 0.420, expected 0.120: b, country:chile over country:kenya" in row[9]
    assert "the largest of many lies above 0 by chance alone" in questions(connection, rows, gaps)


def test_every_question_stands_with_the_scores_of_whoever_was_asked_it(connection: duckdb.DuckDBPyConnection) -> None:
    """Where a language model was asked a few questions, all others were left out; a single model was its own best and worst."""
    board = pd.concat(
        [
            frame({"model": OTHERS, "score": 0.85}).assign(question_id="q0"),
            frame({"model": OTHERS, "score": 0.8}, {"model": "baseline/uniform", "score": 0.6}).assign(question_id="q1"),
            frame({"model": OTHERS, "score": 0.7}, {"model": "gpt", "score": 0.65}).assign(question_id="q2"),
            frame({"model": OTHERS, "score": 0.7}, {"model": "gpt", "score": 0.4}, level="0").assign(question_id="q2"),
            frame({"model": OTHERS, "score": 0.5}, level="0").assign(question_id="q3"),
        ],
        ignore_index=True,
    ).assign(round="S1")
    markup = questions(connection, board, pd.DataFrame())
    richest, without_context = markup.split("</details>")[:2]
    assert [row[3:6] for row in cells(richest)] == [
        [f"0.8500 {OTHERS}", "–", "–"],
        ["0.7000 2 baselines", f"0.8000 {OTHERS}", "0.6000 baseline/uniform"],
        ["0.6500 gpt", "–", "–"],
    ]
    assert [row[1] for row in cells(without_context)] == ["q3"]
    assert "nothing has a score on" not in markup
    assert "nothing has a score on: 1." in questions(connection, board[board["question_id"] != "q0"], pd.DataFrame())
