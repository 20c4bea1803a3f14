"""Roll-ups of judges, analysts and champions: each call counts once, however many rows rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.boards.costs import costs as costs_of_calls
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.rubric_roll_ups import JUDGED_READ, build_champions_table, build_validity_tables, rank_champions
from dtef_pipeline.rubric.tables import (
    RUBRIC_CALL_TABLES,
    RUBRIC_EXTRACTIONS,
    RUBRIC_JUDGEMENTS,
    RUBRIC_RESPONSES,
    RUBRIC_SUMMARIES,
)
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import keep, nothing_stored


def test_what_analysts_extracted_is_theirs_and_counts_once() -> None:
    row = {"analyst": "z", "analyst_variant": "openai/z", "raw": ["r", "r"], "request_keys": ["d", "j"], "cost_usd": 0.45}
    calls = [
        {"request_key": key, "prompt_tokens": 1, "completion_tokens": 1, "cost_usd": cost}
        for key, cost in (("d", 0.4), ("j", 0.05))
    ]
    with duckdb.connect() as connection:
        connection.register("rubric_responses", RUBRIC_RESPONSES.empty_table())
        connection.register("rubric_judgements", RUBRIC_JUDGEMENTS.empty_table())
        connection.register("rubric_summaries", RUBRIC_SUMMARIES.empty_table())
        connection.register("rubric_extractions", pa.Table.from_pylist([row, row], schema=RUBRIC_EXTRACTIONS))
        used = costs_of_calls(connection, "rubric", RUBRIC_CALL_TABLES, lambda keys: pa.Table.from_pylist(calls)).to_pylist()
    assert [(one["role"], one["model"], one["answered"], one["calls"]) for one in used] == [("analyst", "z", 1, 2)]
    assert used[0]["cost_usd"] == pytest.approx(0.45)


def test_judges_cost_each_request_once_as_costs_has_it_and_their_judgements_count_each(tmp_path: Path) -> None:
    """Models that wrote the same are judged by one request, and its cost was added up once for each of them."""
    made = made_tables(2, 4, 2)
    rows = made.rows["rubric_judgements"]
    for row in rows:
        criterion = (row[name] for name in ("blueprint", "prompt", "block", "path", "position", "judge"))
        row["request_keys"], row["cost_usd"] = [digest(*(str(value) for value in criterion))], 0.05
    asked = {row["request_keys"][0] for row in rows}
    again = rows[-1]  # one of those that share a request was asked once more
    again |= {"request_keys": [*again["request_keys"], "second"], "raw": ["r", "r"], "cost_usd": 0.1}

    def bought(keys: Sequence[str]) -> pa.Table:
        return pa.table({"request_key": list(keys), **dict.fromkeys(names[:2], [1] * len(keys)), names[2]: [0.05] * len(keys)})

    names = ("prompt_tokens", "completion_tokens", "cost_usd")
    house = keep(made, tmp_path)
    house.write("rubric_summaries", RUBRIC_SUMMARIES.empty_table(), blueprint="health__topic-0", snapshot="base")
    tables = house.query(lambda connection: build_validity_tables(connection, bought), only=JUDGED_READ)
    judges = tables["rubric_judges"].to_pandas()
    reads = [calls.table for calls in RUBRIC_CALL_TABLES.tables]
    spent = house.query(
        lambda connection: costs_of_calls(connection, "rubric", RUBRIC_CALL_TABLES, bought), only=reads
    ).to_pandas()
    spent = spent[spent["role"] == "judge"]
    assert judges["n"].sum() == len(rows) > 2 * len(asked)
    assert judges["calls"].sum() == spent["calls"].sum() == len(asked) + 1
    assert judges["cost_usd"].sum() == pytest.approx(spent["cost_usd"].sum()) == pytest.approx(0.05 * (len(asked) + 1))


def test_blueprints_that_no_judge_is_asked_about_have_empty_tables_of_validity(tmp_path: Path) -> None:
    """The board failed with "KeyError: 'scale'" where all criteria were functions."""
    made = made_tables(1, 2, 2)
    made.rows["rubric_judgements"] = []
    house = keep(made, tmp_path)
    house.write("rubric_judgements", RUBRIC_JUDGEMENTS.empty_table(), blueprint="health__topic-0", snapshot="base")
    tables = house.query(lambda connection: build_validity_tables(connection, nothing_stored), only=JUDGED_READ)
    assert tables["rubric_judges"].num_rows == 0


def test_grades_of_blueprints_with_the_tag_test_make_no_champion() -> None:
    connection = duckdb.connect()
    names = ("blueprint", "snapshot", "analyst", "model", "dimension", "grade")
    rows = [(f"b{n}", "base", "z", "m", "clarity", grade) for n, grade in enumerate((8.0, 8, 9, 9, 8, 1))]
    connection.register("rubric_grades", pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))
    tags = [None, ["a"], [], [], [], ["test"]]
    connection.register(
        "rubric_blueprints", pa.table({"blueprint": [row[0] for row in rows], "tags": pa.array(tags, pa.list_(pa.string()))})
    )
    connection.register(
        "rubric_runs", pa.table({"snapshot": ["base"], "answered_at": pa.array([None], pa.timestamp("us", "UTC"))})
    )
    (row,) = build_champions_table(connection).to_pylist()
    assert (row["n_blueprints"], row["champion"]) == (5, True)
    assert row["mean"] == pytest.approx(8.4)


ROW = {"snapshot": "s1", "analyst": "one", "model": "m", "dimension": "clarity"}


def graded(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **row} for row in rows], columns=["blueprint", *ROW, "grade"])


def grades_of(model: str, *values: float | None, **rest: Any) -> list[dict[str, Any]]:
    return [{"blueprint": f"b{at}", "model": model, "grade": value, **rest} for at, value in enumerate(values)]


def test_the_best_mean_of_five_blueprints_is_the_champion() -> None:
    found = rank_champions(
        graded(*grades_of("m", 8, 8, 9, 9, 8), *grades_of("n", 10, 10, 10, 10), *grades_of("o", 7, 7, 7, 7, 7)), ["s1"]
    )
    assert found["model"].tolist() == ["m", "o", "n"]
    assert found["mean"].tolist() == pytest.approx([8.4, 7, 10])
    assert found["champion"].tolist() == [True, False, False]
    assert found["reason"].tolist() == ["", "", "graded in 4 blueprints, at least 5 are needed"]


def test_a_blueprint_graded_twice_counts_once_with_the_newer_grade() -> None:
    rows = [*grades_of("m", 8, 8, 8, 8, 8), {"blueprint": "b0", "snapshot": "s2", "grade": 3}]
    for order, mean in ((["s1", "s2"], 7.0), (["s2", "s1"], 8.0)):
        (row,) = rank_champions(graded(*rows), order).to_dict("records")
        assert (row["mean"], row["n_blueprints"]) == (pytest.approx(mean), 5)


def test_grades_of_several_analysts_are_averaged_and_a_missing_one_is_none() -> None:
    rows = [*grades_of("m", 8, 8, 8, 8, 8, None), *grades_of("m", 4, analyst="two")]
    (row,) = rank_champions(graded(*rows), ["s1"]).to_dict("records")
    assert (row["mean"], row["n_blueprints"]) == (pytest.approx((6 + 4 * 8) / 5), 5)


def test_consistency_needs_four_of_the_latest_five_grades_at_five_or_more() -> None:
    old = [{"blueprint": f"old{at}", "snapshot": "s0", "grade": 10} for at in range(6)]
    rows = [*old, *grades_of("m", 4, 4, 9, 9, 9), *grades_of("n", 4, 5, 5, 5, 5)]
    assert rank_champions(graded(*rows), ["s0", "s1"])["champion"].tolist() == [True, False]
    found = rank_champions(graded(*rows), ["s0", "s1"], consistency=True)
    assert found["model"].tolist() == ["n", "m"]
    assert found["champion"].tolist() == [True, False]
    assert found["reason"].tolist() == ["", "a grade of 5 or more in 3 of the latest 5 blueprints"]


def test_no_grades_have_no_champions() -> None:
    assert len(rank_champions(graded(), [])) == 0


def test_the_order_of_the_rows_does_not_matter() -> None:
    table = graded(*grades_of("m", 8, 8.1, 9, 9, 8.7), *grades_of("n", 7, 9, 8, 8, 8), *grades_of("m", 3, analyst="two"))
    pd.testing.assert_frame_equal(rank_champions(table.iloc[::-1], ["s1"]), rank_champions(table, ["s1"]), check_exact=True)
