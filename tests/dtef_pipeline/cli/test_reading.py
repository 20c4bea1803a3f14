"""Commands that only read: export, sql, report and models."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from tests.dtef_pipeline.cli.commands import ok, query, refused, skip_charts


class TestOthers:
    def test_blueprints_are_exported_a_file_a_segment(self, reading: Path, tmp_path: Path) -> None:
        assert "2 files" in ok("export", "prompts", tmp_path / "out", "--round", "S1")
        files = sorted((tmp_path / "out").iterdir())
        assert len(files) == 2
        document = yaml.safe_load(files[0].read_text(encoding="utf-8"))
        assert {"title", "system", "prompts"} <= set(document)
        assert len(document["prompts"]) == 16 * 2
        point = document["prompts"][0]["points"][0]
        assert point["fn"] == "distribution_metric"
        assert sum(point["fnArgs"]["expected"]) == pytest.approx(100, abs=1e-3)
        ok("export", "prompts", tmp_path / "zero", "--round", "S1", "--context", "0")
        assert len(yaml.safe_load((tmp_path / "zero" / files[0].name).read_text(encoding="utf-8"))["prompts"]) == 16

    def test_a_round_without_blueprints_is_named(self, ingested: Path) -> None:
        message = refused("export", "prompts", ingested / "out", "--round", "S1")
        assert "round S1 has no blueprints; rounds with blueprints: none; make them with `dtef run --round S1`" in message
        assert not (ingested / "out").exists()

    def test_sql_reads_every_promised_view(self, reading: Path) -> None:
        views = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "leaderboard", "drift_checks"]
        for view in views:
            assert query(f"SELECT count(*) > 0 AS filled FROM {view}") == [{"filled": True}], view
        assert "filled" in ok("sql", "SELECT 1 AS filled")
        assert ok("sql", "SELECT 1 AS a, NULL AS b", "--csv").splitlines() == ["a,b", "1,"]

    def test_sql_on_an_unknown_table_says_where_the_tables_are_listed(self, ingested: Path) -> None:
        messages = refused("sql", "SELECT * FROM scores"), refused("sql", "FROM survey_response")
        assert "the table scores does not exist yet" in messages[0]
        assert "Did you mean survey_responses" in messages[1]
        for message in messages:
            assert '`dtef sql "SHOW TABLES"`' in message
            assert "sqlite_master" not in message
            assert len(message) < 200
        assert "survey_responses" in ok("sql", "SHOW TABLES")
        assert "syntax error" in refused("sql", "SELEC 1")

    def test_sql_cannot_change_the_tables(self, reading: Path) -> None:
        refused("sql", "DELETE FROM scores")
        assert query("SELECT count(*) > 0 AS kept FROM scores") == [{"kept": True}]

    def test_the_report_is_a_folder_or_a_zip_of_pages_and_leaves_other_files_alone(
        self, reading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        skip_charts(monkeypatch)
        folder, archive = tmp_path / "site", tmp_path / "site.zip"
        assert str(folder / "index.html") in ok("report", "--out", folder)
        page = (folder / "index.html").read_text(encoding="utf-8")
        assert "fake" in page
        assert "2026-01-03" in page
        assert "https://" not in page
        ok("report", "--out", archive)
        names = {f"site/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*") if path.name != ".pages.json"}
        with ZipFile(archive) as zipped:
            assert set(zipped.namelist()) == {name for name in names if (tmp_path / name).is_file()}
        (folder / "drift.html").write_text("my notes", encoding="utf-8")
        (folder / ".pages.json").unlink()
        assert "drift.html exists already" in refused("report", "--out", folder)
        assert (folder / "drift.html").read_text(encoding="utf-8") == "my notes"
        assert "is a file; name a folder" in refused("report", "--out", folder / "drift.html")

    def test_other_tools_read_the_database_beside_the_tables(self, reading: Path) -> None:
        import duckdb

        with duckdb.connect(str(reading / "warehouse" / "dtef.duckdb"), read_only=True) as connection:
            assert connection.execute("SELECT count(*) FROM leaderboard WHERE model = 'fake'").fetchone() == (4,)
