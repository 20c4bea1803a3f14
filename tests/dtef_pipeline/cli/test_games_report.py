"""`dtef games report` and the asset `games_report`: pages of a warehouse, in a folder of the user's or in the warehouse itself."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.survey.store import SurveyStore
from dtef_pipeline.games.space import LEAGUE_SPACE
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, use
from tests.made.game_pages import played_league


def test_the_command_writes_the_pages_that_the_roll_up_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = Warehouse(tmp_path / "warehouse")
    for name, rows in played_league(["poker/kuhn"], range(1, 6)).items():
        at = {} if name in ("persona_results", "matchups") else {**LEAGUE_SPACE.levels("poker/kuhn"), "snapshot": "base"}
        house.write(name, rows, **at)
    use(tmp_path, monkeypatch)
    assert defs
    from assets.games.report import games_report

    result = dg.materialize([games_report], resources={"store": SurveyStore()})
    kept = tmp_path / "warehouse" / "games_report"
    told = result.asset_materializations_for_node("games_report")[0].metadata
    assert told["pages"].value == len(list(kept.glob("*.html"))) > 3
    assert f"({told['pages'].value} pages)" in ok("games", "report", "--out", tmp_path / "out")
    for page in (tmp_path / "out").glob("*.html"):
        assert page.read_bytes() == (kept / page.name).read_bytes()
    assert "index.html" in ok("report", "--family", "games", "--out", tmp_path / "out")
    index = (kept / "index.html").read_text(encoding="utf-8")
    assert "poker__kuhn.html" in index
    assert "solitaire/thirteen" in index
