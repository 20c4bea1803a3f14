"""`dtef report --family games` and the asset `games_report`: pages of a warehouse, in a folder of the user's or in the warehouse itself."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.resources import Store
from dtef_pipeline.games.tables import LEAGUE_SPACE
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused, use
from tests.made.game_pages import played_league


def kept_league(folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """A warehouse of games of Kuhn poker, as the one of the commands."""
    house = Warehouse(folder / "warehouse")
    for name, rows in played_league(["poker/kuhn"], seeds).items():
        at = {} if name in ("persona_results",) else {**LEAGUE_SPACE.levels("poker/kuhn"), "snapshot": "base"}
        house.write(name, rows, **at)
    use(folder, monkeypatch)


def test_the_command_writes_the_pages_that_the_roll_up_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_league(tmp_path, monkeypatch, range(1, 6))
    with monkeypatch.context() as patch:
        (tmp_path / "none" / "warehouse").mkdir(parents=True)
        use(tmp_path / "none", patch)
        assert "they are made by `dtef games run`" in refused("report", "--family", "games", "--out", tmp_path / "out")
    assert defs
    from assets.games.roll_ups import games_report

    result = dg.materialize([games_report], resources={"store": Store()})
    kept = tmp_path / "warehouse" / "games_report"
    told = result.asset_materializations_for_node("games_report")[0].metadata
    assert told["pages"].value == len(list(kept.glob("*.html"))) > 3
    assert f"({told['pages'].value} pages)" in ok("report", "--family", "games", "--out", tmp_path / "out")
    for page in (tmp_path / "out").glob("*.html"):
        assert page.read_bytes() == (kept / page.name).read_bytes()
    assert "index.html" in ok("report", "--family", "games", "--out", tmp_path / "out")
    index = (kept / "index.html").read_text(encoding="utf-8")
    assert "poker__kuhn.html" in index
    assert "solitaire/thirteen" in index


def test_a_page_that_someone_else_wrote_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # `dtef report --family games --out .` once overwrote the index.html of another site.
    kept_league(tmp_path, monkeypatch, range(1, 2))
    out = tmp_path / "site"
    out.mkdir()
    (out / "index.html").write_text("my own", encoding="utf-8")
    for command in (("report", "--family", "games"), ("report", "--family", "games")):
        assert "index.html is there already and was not written by dtef; allowed: a folder without it" in refused(
            *command, "--out", out
        )
    assert [path.name for path in out.iterdir()] == ["index.html"]
    assert (out / "index.html").read_text(encoding="utf-8") == "my own"
    (out / "index.html").unlink()
    ok("report", "--family", "games", "--out", out)
    (out / ".pages.json").unlink()
    ok("report", "--family", "games", "--out", out)
