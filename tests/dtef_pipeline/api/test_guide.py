"""What docs/api.md sends with curl is what the API takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import client_in

SENT = re.compile(r"\$API(/\S+) -d '(.*?)'", re.DOTALL)


def test_the_bodies_of_the_guide_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in (("DTEF_WAREHOUSE", "warehouse"), ("DTEF_RESPONSES", "responses.sqlite"), ("DAGSTER_HOME", "dagster")):
        monkeypatch.setenv(name, str(tmp_path / place))
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    with client_in(tmp_path) as client:
        found = {path: client.post(f"/api{path}", json=json.loads(body)) for path, body in SENT.findall(page)}
    assert {path: answer.status_code for path, answer in found.items()} == {
        "/personas": 201,
        "/personas/calm-player/status": 200,
        "/evaluations": 202,
        # There is no response to pair here, and no pair of that id.
        "/feedback/pairs": 409,
        "/feedback/votes": 404,
    }, {path: answer.text for path, answer in found.items()}
