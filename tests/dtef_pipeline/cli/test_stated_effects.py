"""A design effect that was stated at ingest is said wherever it changed a number."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.cli.survey.boards import format_design_effect_lines
from dtef_pipeline.survey.design_effects import describe_n
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, ok, run_stages

SAID = "design effect given at ingest: 1.5 for S1"


@pytest.mark.thorough
def test_boards_and_report_say_which_rounds_have_which_design_effect(ingested: Path) -> None:
    """It was said at ingest alone, and lowered ceilings and moved skill in silence."""
    ok("add", SAMPLE, "--design-effect", "1.5")
    what = ["--round", "S1", *CHOSEN, "--model", "baseline/uniform", "--questions", "3"]
    assert SAID in run_stages(*what)
    assert SAID in ok("board")
    assert SAID not in ok("board", "--by", "metric")
    assert SAID not in ok("board", "--csv")
    ok("report", "--out", ingested / "site")
    assert f"D{SAID[1:]}" in (ingested / "site" / "data.html").read_text(encoding="utf-8")
    warehouse = Warehouse(ingested / "warehouse")
    assert format_design_effect_lines(warehouse, pd.DataFrame(columns=["skill"]), ["S2"]) == ""


def test_rounds_of_one_design_effect_are_named_together() -> None:
    stated = [
        {"round": name, "code": "design-effect", "items": [effect]}
        for name, effect in (("S1", "1.5"), ("S2", "2"), ("S3", "1.5"))
    ]
    with duckdb.connect() as connection:
        connection.register("survey_findings", pa.Table.from_pylist(stated))
        (line,) = describe_n(connection)
        assert "1.5 for S1, S3; 2 for S2;" in line
        assert describe_n(connection, ["S4"]) == []
