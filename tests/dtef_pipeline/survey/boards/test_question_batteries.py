"""The table of questions with their batteries over all rounds."""

from __future__ import annotations

from typing import Any

import duckdb

from dtef_pipeline.survey.boards.question_links import build_question_batteries
from dtef_pipeline.survey.tables import QUESTION_BATTERIES
from tests.made.scores import survey_rows


def of(battery: str, *texts: str, round_id: str = "S1") -> list[dict[str, Any]]:
    return [
        {"battery": battery, "question_text": text, "round": round_id, "question_id": f"{battery}{at}"}
        for at, text in enumerate(texts)
    ]


def test_the_table_has_one_row_for_each_question_of_a_round_with_its_linked_battery_and_why() -> None:
    """Who recomputed an interval had to link batteries himself."""
    rows = [*of("rule:a", "A judge", "The nurse"), *of("rule:b", "A judge", "Why?", round_id="S2"), *of("rule:c", "Where?")]
    with duckdb.connect() as connection:
        assert build_question_batteries(connection) == QUESTION_BATTERIES.empty_table()
        connection.register("survey_responses", survey_rows(*rows))
        found = build_question_batteries(connection).to_pylist()
    assert [(row["round"], row["question_id"], row["battery"]) for row in found] == [
        *(("S1", f"{battery}{at}", battery) for battery, at in (("rule:a", 0), ("rule:a", 1), ("rule:c", 0))),
        *(("S2", name, "rule:b") for name in ("rule:b0", "rule:b1")),
    ]
    linked = {row["question_text"]: (row["linked_battery"], row["reason"]) for row in found}
    assert linked["The nurse"] == linked["Why?"] == linked["A judge"]
    assert linked["A judge"][1].endswith("; questions asked in several rounds")
    assert linked["Where?"][1] == ""
    assert linked["Where?"][0] != linked["A judge"][0]
