"""The check `landings_are_readable`, which makes a broken landing visible where one looks for what is red."""

from __future__ import annotations

from typing import Any

import dagster as dg

from assets.survey.rounds import survey_files
from tests.assets.survey.landing_folder import Landing


class TestCheck:
    def said(self, result: Any) -> tuple[bool, str, list[str]]:
        (found,) = result.asset_events
        assert (found.asset_key, found.severity) == (survey_files.key, dg.AssetCheckSeverity.WARN)
        return found.passed, found.description, sorted(found.metadata)

    def test_it_is_made_by_the_sensor_when_what_cannot_be_read_changes(self, landing: Landing) -> None:
        landing.land("a.csv", ["A1"], questions=1)
        assert self.said(landing.look()) == (True, "all 1 can be read", [])
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").write_text("call me", encoding="utf-8")
        assert not landing.look().asset_events
        passed, description, files = self.said(landing.look())
        assert (passed, files) == (False, ["notes.txt"])
        assert "1 of 2" in description
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").unlink()
        assert self.said(landing.look())[0]
