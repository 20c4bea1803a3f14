"""`dtef report --family qa` and the asset `qa_report`: pages of a warehouse, in a folder of the user's or in the warehouse itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.panel_drift import panel_drift
from assets.stage.resources import Store
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import SHARED_TABLES
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused, use
from tests.made.qa_scores import keep_in, night
from tests.made.qa_suites import made_qa
from tests.made.qa_tables import QaMade
from tests.made.read_page import ReadPage

NIGHTS = 12
PARTS = {"gsm8k__all.html", "humaneval__all.html", "mmlu__subject_0.html", "mmlu__subject_1.html", "socioscope__talks.html"}


def watched() -> QaMade:
    """Some parts, and twelve nights of one subject in which the best model gets worse from the fifth on."""
    made = made_qa(2, 20)
    mine = {"suite": "mmlu", "part": "subject_0", "condition": "letters", "model": "best"}
    for name in ("qa_scores", "qa_responses"):
        rows = [row for row in made.rows[name] if all(row[key] == value for key, value in mine.items())]
        made.rows[name] += [_on(row, at) for row in rows for at in range(NIGHTS)]
    return made


def _on(row: dict[str, Any], at: int) -> dict[str, Any]:
    is_worse = at > 4 and not row["item_id"].endswith(("0", "5"))
    return {**row, **night(at), **({"score": 0.0, "value": 0.0} if is_worse and "score" in row else {})}


def made_by_roll_ups() -> dg.ExecuteInProcessResult:
    assert defs  # importing it turns Dagster's warnings about single-run backfills off
    from assets.qa.roll_ups import QA_ROLL_UPS

    return dg.materialize(QA_ROLL_UPS, resources={"store": Store()}, raise_on_error=False)


@pytest.fixture(scope="module")
def rolled_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dg.ExecuteInProcessResult]]:
    folder = tmp_path_factory.mktemp("qa")
    keep_in(folder / "warehouse", {name: rows for name, rows in watched().rows.items() if rows})
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        yield folder, made_by_roll_ups()


@pytest.fixture
def folder(rolled_up: tuple[Path, dg.ExecuteInProcessResult], monkeypatch: pytest.MonkeyPatch) -> Path:
    use(rolled_up[0], monkeypatch)
    return rolled_up[0]


def test_the_roll_up_keeps_the_pages_in_the_warehouse(rolled_up: tuple[Path, dg.ExecuteInProcessResult]) -> None:
    folder, result = rolled_up
    assert result.success
    told = result.asset_materializations_for_node("qa_report")[0].metadata
    pages = folder / "warehouse" / "qa_report"
    assert {page.name for page in pages.glob("*.html")} == {"index.html", *PARTS}
    assert told["pages"].value == 1 + len(PARTS)
    assert told["bytes"].value == sum(page.stat().st_size for page in pages.glob("*.html"))
    assert str(told["path"].value) == str(pages / "index.html")
    assert "| index.html |" in str(told["largest"].value)


def test_the_command_writes_the_pages_that_the_roll_up_keeps(folder: Path, tmp_path: Path) -> None:
    assert ok("report", "--family", "qa", "--out", tmp_path / "out") == f"{tmp_path / 'out' / 'index.html'} (6 pages)\n"
    kept = folder / "warehouse" / "qa_report"
    for page in (tmp_path / "out").glob("*.html"):
        assert page.read_bytes() == (kept / page.name).read_bytes()
    assert "(6 pages)" in ok("report", "--family", "qa", "--out", tmp_path / "out")


def test_a_model_that_moved_is_to_watch_without_another_and_told_with_its_nights(folder: Path) -> None:
    text = ReadPage((folder / "warehouse" / "qa_report" / "index.html").read_text(encoding="utf-8")).text
    assert "Verdict on each model" in text
    assert "2026-01-06" in text
    assert "1 of 1 series to watch." in text
    assert "Parts that the documented rule flags" in text
    assert "Not compared, and why (" in text
    assert "No drift checks" not in text
    page = (folder / "warehouse" / "qa_report" / "mmlu__subject_0.html").read_text(encoding="utf-8")
    assert '"snapshots":["2026-01-12","base"]' in page


def test_pages_of_parts_that_are_no_more_go_and_other_files_stay(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    ok("report", "--family", "qa", "--out", out)
    (out / "notes.txt").write_text("mine")
    keep_in(
        tmp_path / "warehouse",
        {name: [row for row in rows if row["suite"] == "mmlu"] for name, rows in made_qa(1, 2).rows.items()},
    )
    use(tmp_path, monkeypatch)
    told = ok("report", "--family", "qa", "--out", out)
    assert "(2 pages)" in told
    assert "removed, since they do not belong to it any more" in told
    assert {file.name for file in out.iterdir()} == {"index.html", "mmlu__subject_0.html", "notes.txt", ".pages.json"}


def test_when_the_last_part_goes_no_board_and_no_page_is_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roll-ups failed for good, in words of DuckDB, and boards and pages kept what was removed."""
    copytree(folder / "warehouse", tmp_path / "warehouse")
    use(tmp_path, monkeypatch)
    house = Warehouse(tmp_path / "warehouse")
    house.write("drift", DRIFT.empty_table(), family="rubric")
    assert "qa" in house.values("drift", "family")
    assert "boards and pages follow at the next `dtef qa board --refresh`" in ok("qa", "remove", "[!m]*", "mmlu/subject_1")
    assert "nothing is scored any more: boards and pages went too" in ok("qa", "remove", "mmlu/*")
    assert "no qa_board" in refused("qa", "board")
    parts = {(table, family) for table in SHARED_TABLES for family in house.values(table, "family")}
    assert parts == {("drift", "rubric")}, "those of other families stay"
    assert list((tmp_path / "warehouse" / "qa_report").glob("*")) == []
    assert "they are made by `dtef qa run`" in refused("qa", "board", "--refresh")
    assert "no qa_scores in" in refused("drift", "--family", "qa")
    (tmp_path / "panel.yaml").write_text("drift: {since: {someold: 2026-01-01}}\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_PANEL", str(tmp_path / "panel.yaml"))
    with pytest.raises(ConfigError, match=r"since\.someold: the panel asks no such model, and none has scores"):
        panel_drift(Settings.from_environment(), Warehouse(tmp_path / "warehouse"))
    monkeypatch.delenv("DTEF_PANEL")
    failed = made_by_roll_ups().get_step_failure_events()
    told = {one.node_name: str(one.step_failure_data.error) for one in failed}
    assert {name for name in told if "yet: materialize the stages of a part first" in told[name]} == {
        *("qa_board", "qa_costs", "qa_drift", "qa_validity")
    }


def test_nothing_scored_and_a_file_in_the_way_are_said(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    assert "it is a file; allowed: a folder, new or there already" in refused(
        "report", "--family", "qa", "--out", tmp_path / "file"
    )
    Warehouse(tmp_path / "warehouse")
    (tmp_path / "warehouse").mkdir(exist_ok=True)
    use(tmp_path, monkeypatch)
    assert "they are made by `dtef qa run`" in refused("report", "--family", "qa", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert dtef("report", "--family", "qa", "--help").exit_code == 0
