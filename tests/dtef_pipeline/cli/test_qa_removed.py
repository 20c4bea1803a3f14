"""What is left of boards when parts of the qa family are removed: those of the others, and none where nothing is scored any more."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.resources import Store
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.families import SHARED_TABLES
from resources.site_writer import write_site
from tests.dtef_pipeline.cli.commands import ok, refused, use
from tests.made.qa_scores import keep_in
from tests.made.qa_suites import made_qa


def roll_up() -> dg.ExecuteInProcessResult:
    assert defs  # importing it turns Dagster's warnings about single-run backfills off
    from assets.qa.roll_ups import QA_ROLL_UPS

    boards = [one for one in QA_ROLL_UPS if one.key.path != ["report"]]
    return dg.materialize(boards, resources={"store": Store()}, raise_on_error=False)


def test_when_the_last_part_goes_no_board_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll-ups failed for good, in words of DuckDB, and boards and pages kept what was removed."""
    house = keep_in(tmp_path / "warehouse", {name: rows for name, rows in made_qa(2, 4).rows.items() if rows})
    use(tmp_path, monkeypatch)
    monkeypatch.setattr("dtef_pipeline.site.build.static_files", lambda: ())  # the chart library alone takes seconds
    assert roll_up().success
    write_site(house)
    site = tmp_path / "warehouse" / "report"
    assert (site / "qa" / "index.html").is_file()
    house.write("drift", DRIFT.empty_table(), family="rubric")
    assert "qa" in house.values("drift", "family")
    assert "boards and pages change with the next `dtef qa board --refresh`" in ok("qa", "remove", "[!m]*", "mmlu/subject_1")
    assert "no scores are left: boards and pages were removed too" in ok("qa", "remove", "mmlu/*")
    assert not (site / "qa" / "index.html").exists()
    assert "Nothing is evaluated yet" in (site / "index.html").read_text(encoding="utf-8")
    assert "no qa_board" in refused("qa", "board")
    parts = {(table, family) for table in SHARED_TABLES for family in house.values(table, "family")}
    assert parts == {("drift", "rubric")}, "those of other families stay"
    assert "they are made by `dtef qa run`" in refused("qa", "board", "--refresh")
    assert "no qa_scores in" in refused("drift", "--family", "qa")
    failed = {one.node_name: str(one.step_failure_data.error) for one in roll_up().get_step_failure_events()}
    assert {name for name in failed if "yet: materialize the stages of a part first" in failed[name]} == {
        *("qa_board", "qa_costs", "qa_drift", "qa_validity")
    }
