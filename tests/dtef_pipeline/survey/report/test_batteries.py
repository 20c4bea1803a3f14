"""The table of batteries: what is together, and why."""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb
import pytest

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.boards.linked import question_batteries
from dtef_pipeline.survey.report.quality import batteries
from dtef_pipeline.survey.tables import QUESTION_BATTERIES
from tests.made.scores import survey_rows


def section(*rows: dict[str, Any], without: str = "") -> str:
    table = survey_rows(*rows)
    with duckdb.connect() as connection:
        connection.register("survey_responses", table.drop_columns(without) if without else table)
        return batteries(connection)


def reasons(*rows: dict[str, Any]) -> list[str]:
    (held,) = re.findall(r'class="rows">(.*?)</script>', section(*rows))
    why = json.loads(held)["why"]
    return [why["distinct"][at] for at in why["at"]] if isinstance(why, dict) else why


def of(battery: str, *texts: str, round_id: str = "S1") -> list[dict[str, Any]]:
    return [
        {"battery": battery, "question_text": text, "round": round_id, "question_id": f"{battery}{at}"}
        for at, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("battery", "texts", "expected"),
    [
        ("rule:a", ("Do you trust judges?", "Do you trust <nurses>?"), "one stem: “Do you trust …”"),
        ("rule:a", ("Judges act as they should?", "Nurses act as they should?"), "one stem: “… act as they should?”"),
        ("rule:a", ("A judge", "The nurse"), "items of one list over one scale"),
        ("rule:a", ("Is it?", "Was it?"), "asked next to each other over one scale, or again later"),
        ("given:B", ("Is it?", "Was it?"), "named B by the survey"),
    ],
)
def test_it_says_why_questions_are_together(battery: str, texts: tuple[str, ...], expected: str) -> None:
    assert reasons(*of(battery, *texts)) == [expected] * 2


def test_the_table_of_questions_has_one_row_for_each_of_a_round_with_its_linked_battery_and_why() -> None:
    """Who recomputed an interval had to link batteries himself."""
    rows = [*of("rule:a", "A judge", "The nurse"), *of("rule:b", "A judge", "Why?", round_id="S2"), *of("rule:c", "Where?")]
    with duckdb.connect() as connection:
        assert question_batteries(connection) == QUESTION_BATTERIES.empty_table()
        connection.register("survey_responses", survey_rows(*rows))
        found = question_batteries(connection).to_pylist()
    assert [(row["round"], row["question_id"], row["battery"]) for row in found] == [
        *(("S1", f"{battery}{at}", battery) for battery, at in (("rule:a", 0), ("rule:a", 1), ("rule:c", 0))),
        *(("S2", name, "rule:b") for name in ("rule:b0", "rule:b1")),
    ]
    linked = {row["question_text"]: (row["linked_battery"], row["why"]) for row in found}
    assert linked["The nurse"] == linked["Why?"] == linked["A judge"]
    assert linked["A judge"][1].endswith("; questions asked in several rounds")
    assert linked["Where?"][1] == ""
    assert linked["Where?"][0] != linked["A judge"][0]


def test_a_question_of_several_rounds_is_one_question_and_links_batteries() -> None:
    rows = [*of("rule:a", "A judge", "The nurse"), *of("rule:b", "A judge", "Why?", round_id="S2"), *of("rule:c", "Where?")]
    text = section(*rows)
    assert (
        "4 different questions of 2 rounds make 2 batteries: 1 of two and more different questions, 1 of a single one." in text
    )
    assert reasons(*rows)[0].endswith("; questions asked in several rounds")
    assert text.count("<li>A judge</li>") == 1
    assert "<nurses>" not in section(*of("rule:a", "Do you trust <nurses>?", "Do you trust judges?"))


def test_a_survey_that_an_earlier_version_read_is_to_be_read_again() -> None:
    with pytest.raises(WarehouseError, match="have no column battery: score those rounds again with `dtef run --from ingest"):
        section({}, without="battery")
