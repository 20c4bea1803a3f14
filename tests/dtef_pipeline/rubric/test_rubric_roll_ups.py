"""Costs by role: each call counts once, however many rows rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dtef_pipeline.boards.costs import costs as costs_of_calls
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_CALL_TABLES, RUBRIC_SUMMARIES
from dtef_pipeline.rubric.rubric_roll_ups import JUDGED_READ, build_champions_table, build_validity_tables
from dtef_pipeline.rubric.tables import RUBRIC_EXTRACTIONS, RUBRIC_JUDGEMENTS, RUBRIC_RESPONSES
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import keep

USED = {
    "a": (10, 1, 0.1),
    "b": (20, 2, 0.2),
    "c": (30, 3, None),
    "d": (40, 4, 0.4),
    "j": (5, 5, 0.05),
}
"""Tokens and dollars by call."""


def stored(keys: Sequence[str]) -> pa.Table:
    rows = [
        dict(zip(("request_key", "prompt_tokens", "completion_tokens", "cost_usd"), (key, *USED[key]), strict=True))
        for key in keys
    ]
    return pa.Table.from_pylist(rows)


def summary(**given: list[object]) -> pa.Table:
    names = ("model", "snapshot", "role", "responses", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced")
    return pa.table({name: given.get(name, []) for name in names})


def costs(
    conversations: Sequence[Sequence[str]],
    judged: Sequence[Sequence[str]] = (),
    of_store: pa.Table | None = None,
    listed: Sequence[Sequence[str]] = (),
) -> list[dict]:  # type: ignore[type-arg]
    connection = duckdb.connect()

    def used(keys: Sequence[str]) -> dict[str, object]:
        prices = [USED[key][2] for key in keys]
        total = None if None in prices else sum(price for price in prices if price is not None)
        tokens = [sum(USED[key][at] for key in keys) for at in (0, 1)]
        return {"request_keys": list(keys), "prompt_tokens": tokens[0], "completion_tokens": tokens[1], "cost_usd": total}

    responses = [{"model": "m", "model_variant": "openai/m", "turns": len(keys), **used(keys)} for keys in conversations]
    judgements = [{"judge_model": "x", "judge_variant": "openai/x", "raw": ["r"] * len(keys), **used(keys)} for keys in judged]
    extractions = [{"analyst": "z", "analyst_variant": "openai/z", "raw": ["r"] * len(keys), **used(keys)} for keys in listed]
    connection.register("rubric_responses", pa.Table.from_pylist(responses, schema=RUBRIC_RESPONSES))
    connection.register("rubric_judgements", pa.Table.from_pylist(judgements, schema=RUBRIC_JUDGEMENTS))
    connection.register("rubric_summaries", RUBRIC_SUMMARIES.empty_table())
    connection.register("rubric_extractions", pa.Table.from_pylist(extractions, schema=RUBRIC_EXTRACTIONS))
    rows: list[dict] = costs_of_calls(connection, "rubric", RUBRIC_CALL_TABLES, stored, summary=of_store).to_pylist()  # type: ignore[type-arg]
    return rows


def test_what_analysts_extracted_is_theirs_and_counts_once() -> None:
    _, row = costs([["a"]], listed=[["d", "j"], ["d", "j"]])
    assert (row["role"], row["model"], row["answered"], row["calls"]) == ("analyst", "z", 1, 2)
    assert row["cost_usd"] == pytest.approx(0.45)


def test_conversations_that_share_their_first_turn_count_it_once() -> None:
    (row,) = costs([["a", "b"], ["a", "d"], ["c"]])
    assert (row["calls"], row["prompt_tokens"], row["completion_tokens"], row["unpriced"]) == (4, 100, 10, 1)
    assert row["cost_usd"] == pytest.approx(0.1 + 0.2 + 0.4)


def test_roles_are_distinguished_and_embedders_come_from_the_store() -> None:
    of_store = summary(
        model=["e", "e", "m"],
        snapshot=["base", "night", "base"],
        role=["embedder", "embedder", "candidate"],
        responses=[2, 1, 9],
        prompt_tokens=[7, 1, 9],
        completion_tokens=[0, 0, 9],
        cost_usd=[0.5, None, 9.0],
        unpriced=[0, 1, 0],
    )
    rows = costs([["a"]], [["j"], []], of_store)
    assert [(row["role"], row["model"], row["calls"]) for row in rows] == [
        ("candidate", "m", 1),
        ("judge", "x", 1),
        ("embedder", "e", 2),
        ("embedder", "e", 1),
    ]
    assert [row["cost_usd"] for row in rows[:-1]] == pytest.approx([0.1, 0.05, 0.5])
    assert (rows[-1]["cost_usd"], rows[-1]["unpriced"]) == (None, 1)


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
    warehouse = house
    tables = warehouse.query(lambda connection: build_validity_tables(connection, bought), only=JUDGED_READ)
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
    warehouse = house
    tables = warehouse.query(lambda connection: build_validity_tables(connection, stored), only=JUDGED_READ)
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
