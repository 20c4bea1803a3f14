"""Scores become one row per cell: draws averaged, references joined, unscored cells null and not zero."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.boards.cells import has_table, identify, load_cells
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.tables import METRICS
from tests.made.scores import reference_row, reference_table, scores_table, survey_rows


def cells_of(
    rows: list[dict[str, Any]],
    references: list[dict[str, Any]] | None = None,
    survey: pa.Table | None = None,
    **options: Any,
) -> pd.DataFrame:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        if references is not None:
            connection.register("reference_scores", reference_table(references))
        if survey is not None:
            connection.register("survey_responses", survey)
        return load_cells(connection, SurveyBoardOptions(**options))


def test_a_row_is_a_cell_with_its_draws_averaged_and_counted() -> None:
    rows = [
        {"score": 0.5, "l2_corrected": 0.1},
        {"score": 0.7, "draw": 1, "l2_corrected": 0.3},
        {"score": 0.0, "draw": 2, "status": "unparseable"},
        {"score": None, "draw": 3, "status": "error"},
    ]
    cell = cells_of(rows).iloc[0]
    assert (cell["n_total"], cell["n_ok"], cell["n_answered"]) == (4, 2, 3)
    assert cell["score"] == pytest.approx(0.4)
    assert cell["parsed_score"] == pytest.approx(0.6)
    assert cell["l2_corrected"] == pytest.approx(0.2)


def test_references_are_those_of_the_boards_metric() -> None:
    references = [reference_row(cluster="k", n=40, gini=0.6, ceiling={"js": 0.9, "tv": 0.95}, leave_one_out_score=None)]
    for metric, ceiling in (("js", 0.9), ("tv", 0.95)):
        cell = cells_of([{"tv": 0.2}], references, metric=metric).iloc[0]
        assert (cell["cluster"], cell["n"]) == ("k", 40)
        assert (cell["ceiling"], cell["gini"]) == pytest.approx((ceiling, 0.6))
        assert np.isnan(cell["leave_one_out_score"])


def test_questions_of_a_battery_are_one_cluster_in_all_rounds_and_remain_different_questions() -> None:
    # Items of a battery counted as independent questions: intervals of 42 questions in 7 batteries covered 66 %.
    asked = [("S1", "q0", "trust"), ("S1", "q1", "trust"), ("S1", "q2", "alone"), ("S2", "q3", "other"), ("S3", "q4", "trust")]
    rows = [{"round": r, "question_id": q} for r, q, _ in asked]
    same = {"q1": "repeated", "q3": "repeated"}
    references = [reference_row(round=r, question_id=q, cluster=same.get(q, q)) for r, q, _ in asked]
    texts = {"q1": "Do you trust banks?", "q3": "Do you trust banks?"}
    survey = survey_rows(*({"round": r, "question_id": q, "battery": b, "question_text": texts.get(q, q)} for r, q, b in asked))
    frame = cells_of(rows, references, survey).set_index("question_id")
    assert frame["same_item"].to_dict() == {"q0": "q0", "q1": "repeated", "q2": "q2", "q3": "repeated", "q4": "q4"}
    cluster = frame["cluster"].to_dict()
    assert cluster["q0"] == cluster["q1"] == cluster["q3"]
    assert len({cluster[q] for q in ("q0", "q2", "q4")}) == 3


def test_a_survey_of_an_earlier_version_without_batteries_is_refused_with_the_remedy() -> None:
    with pytest.raises(WarehouseError, match=r"have no column battery: score those rounds again with `dtef run --from ingest"):
        cells_of([{}], survey=survey_rows({}).drop_columns(["battery"]))


def test_identify_agrees_with_a_naive_loop() -> None:
    rng = np.random.default_rng(1)
    columns = ["a", "b", "c"]
    frame = pd.DataFrame({name: pd.Categorical(rng.choice(list("xyz"), size=50)) for name in columns})
    code, rows = identify(frame, columns)
    for place in range(50):
        assert rows.iloc[code[place]].tolist() == frame.iloc[place].tolist()
    assert len(rows) == len({tuple(row) for row in frame.to_numpy().tolist()})
    assert identify(frame, [])[0].tolist() == [0] * 50
    assert len(identify(frame.iloc[:0], columns)[1]) == 0


def test_a_table_is_found_whether_registered_view_or_table() -> None:
    with duckdb.connect() as connection:
        connection.register("a", pa.table({"x": [1]}))
        connection.execute("CREATE VIEW b AS SELECT 1 AS x")
        connection.execute("CREATE TABLE c AS SELECT 1 AS x")
        assert [has_table(connection, name) for name in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 10.5}, r"seed 10\.5: allowed"),
        ({"seed": -3}, "seed -3: allowed"),
        ({"targets": "some"}, "targets 'some': allowed: clean, all"),
        ({"metric": "bleu"}, f"metric 'bleu': allowed: {', '.join(METRICS)}"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SurveyBoardOptions(**options)
