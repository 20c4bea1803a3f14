"""The curation file in a landing: what a row that has gone stale stops."""

from __future__ import annotations

import pytest

from assets.stage.dagster_internals import RANGE_START
from tests.assets.survey.landing_folder import Landing


def test_a_stale_row_stops_its_round_alone_until_it_is_mended(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row stopped all rounds of the file that its round stands in."""
    file = landing.folder.parent / "batteries.yaml"
    row = "  - {{round: {}, question_id: {}, battery: B, reason: asked apart}}\n".format
    monkeypatch.setenv("DTEF_BATTERIES", str(file))
    file.write_text("batteries:\n" + row("A1", "gone") + row("Z9", "q0"), encoding="utf-8")
    landing.land("all.csv", ["A1", "B1"])
    assert [request.tags[RANGE_START].split("/")[0] for request in landing.settled()] == ["B1"]
    assert landing.requests() == []
    assert f"{file}:2: row 1: question_id: got 'gone', which round A1 does not ask" in str(landing.reason)
    file.write_text("batteries:\n" + row("A1", "q0") + row("Z9", "q0"), encoding="utf-8")
    assert [request.tags[RANGE_START].split("/")[0] for request in landing.requests()] == ["A1"]
