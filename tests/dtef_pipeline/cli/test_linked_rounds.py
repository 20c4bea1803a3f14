"""A view of one round links its batteries as boards of all rounds do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dtef_pipeline.cli.warehouse_access import query_rounds
from dtef_pipeline.survey.boards.question_links import load_question_clusters
from dtef_pipeline.survey.tables import SCORES, SURVEY_RESPONSES
from resources.warehouse import Warehouse

TEXTS = {"q1": "How much do you trust newspapers?", "q2": "Which of these did you do last week?"}


def asked(round_id: str, **batteries: str) -> pa.Table:
    """What one segment of a round answered to the questions of `batteries`."""
    known = {"round": round_id, "segment": "age:18-25", "options": ["yes", "no"], "observed": [0.5, 0.5], "n": 20}
    rows = [
        known | {"question_id": question, "question_text": TEXTS[question], "battery": battery}
        for question, battery in batteries.items()
    ]
    return pa.Table.from_pylist(rows, schema=SURVEY_RESPONSES)


def test_a_battery_of_another_round_holds_questions_together_where_one_round_alone_is_read(tmp_path: Path) -> None:
    house = Warehouse(tmp_path)
    house.write("survey_responses", asked("R1", q1="media", q2="media"), round="R1", segment="age:18-25")
    house.write("survey_responses", asked("R2", q1="trust", q2="did"), round="R2", segment="age:18-25")
    for round_id in ("R1", "R2"):
        house.write("scores", SCORES.empty_table(), round=round_id, segment="age:18-25", snapshot="base")
    warehouse, tables = house, ("scores", "survey_responses")
    alone = warehouse.query(load_question_clusters, only=tables, first=["R2"])
    assert alone["cluster"].nunique() == 2
    linked = query_rounds(warehouse, load_question_clusters, tables, ["R2"])
    assert linked["cluster"].nunique() == 1
    assert query_rounds(warehouse, load_question_clusters, tables, [])["cluster"].nunique() == 1
