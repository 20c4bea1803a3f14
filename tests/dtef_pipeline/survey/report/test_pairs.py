"""The data of pairs inside the page: what the script will draw from."""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.survey.report.pairs import pair_data, pairs
from tests.made.scores import scores_table, survey_rows

ROOM = 10**7


def said(model: str, level: str = "0", **given: Any) -> dict[str, Any]:
    return {"model": model, "model_variant": f"{model}[t=0]", "context_level": level, "predicted": [0.5, 0.3, 0.2], **given}


def tables(rows: list[dict[str, Any]], **others: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    survey = survey_rows({}, {}, {"segment": "country:chile", "question_id": "q0"})
    for name, table in {"scores": scores_table(rows), "survey_responses": survey, **others}.items():
        connection.register(f"_{name}", table)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
    return connection


def numbers(code: str) -> list[int]:
    """Thousandths from two characters each."""
    return [int(code[at : at + 2], 36) for at in range(0, len(code), 2)]


def test_shares_and_score_are_in_the_order_of_the_options() -> None:
    with tables([said("gpt", predicted=[0.62, 0.0, 0.38], score=0.7126)]) as connection:
        data, left_out = pair_data(connection, ROOM)
    (question,) = data["questions"]
    (row,) = question["s"]
    assert left_out == 0
    assert (data["models"], data["asked"], data["segments"]) == (
        ["gpt"],
        [["0", "distribution/attribute-label"]],
        ["country:kenya"],
    )
    assert (question["r"], question["id"], question["o"]) == ("S1", "q0", ["Agree", "Neutral", "Disagree"])
    assert row[:4] == [0, 40, None, None]
    assert numbers(row[4]) == [500, 300, 200]
    assert numbers(row[5]) == [620, 0, 380, 713]


def test_draws_are_averaged_and_the_latest_snapshot_counts() -> None:
    drawn = [{"draw": 0, "predicted": [0.4, 0.6, 0.0], "score": 0.2}, {"draw": 1, "predicted": [0.6, 0.2, 0.2], "score": 0.4}]
    rows = [said("gpt", snapshot="2026-01-02", **draw) for draw in drawn] + [said("gpt", snapshot="base", score=0.9)]
    with tables(rows) as connection:
        data = pair_data(connection, ROOM).shown
    code, draws = data["questions"][0]["s"][0][5].split("*")
    assert numbers(code) == [500, 400, 100, 300]
    assert draws == "2/2"


def test_questions_are_left_out_when_the_page_grows_too_large_and_the_page_says_so() -> None:
    rows = [said("gpt"), said("gpt", segment="country:chile"), said("gpt", question_id="q1")]
    with tables(rows) as connection:
        data, left_out = pair_data(connection, 600)
        text = pairs(connection, most_bytes=600)
        _, none_left_out = pair_data(connection, ROOM)
    assert [question["id"] for question in data["questions"]] == ["q0"]
    assert len(data["questions"][0]["s"]) == 2  # every segment of what is kept
    assert (left_out, none_left_out) == (1, 0)
    assert "holds 1 of 2 questions" in text


def test_texts_cannot_end_the_script_that_holds_them() -> None:
    with tables([said("</script><b>")]) as connection:
        held = re.findall(r'<script type="application/json" id="pair-data">(.*?)</script>', pairs(connection))
    assert "<" not in held[0]
    assert json.loads(held[0])["models"] == ["</script><b>"]
