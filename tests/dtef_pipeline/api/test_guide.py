"""What docs/api.md sends with curl, and what the page of new evaluations shows as examples, is what the API takes where the demo was added."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dtef_pipeline.api.new_evaluation_page import MANIFEST_EXAMPLES
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import add_partitions, client_in, settings_in

SENT = re.compile(r"\$API(/\S+) -d '(.*?)'", re.DOTALL)
DEMO = {
    "round_segment": ["S1/country:kenya", "S1/country:india"],
    "rubric_blueprint": ["demo-facts", "demo-letters"],
    "dataset_part": ["demo-mmlu/everyday_logic", "demo-gsm8k/all"],
}


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the demo was added."""
    for name, place in (("DTEF_WAREHOUSE", "warehouse"), ("DTEF_RESPONSES", "responses.sqlite"), ("DAGSTER_HOME", "dagster")):
        monkeypatch.setenv(name, str(tmp_path / place))
    add_partitions(settings_in(tmp_path), DEMO)
    return tmp_path


def test_the_bodies_of_the_guide_are_taken(demo: Path) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    with client_in(demo) as client:
        found = [(path, client.post(f"/api{path}", json=json.loads(body))) for path, body in SENT.findall(page)]
    assert [(path, answer.status_code) for path, answer in found] == [
        ("/personas", 201),
        ("/personas/calm-player/status", 200),
        *[("/evaluations", 202)] * 4,
        # There is no response to pair here, and no pair of that id.
        ("/feedback/pairs", 409),
        ("/feedback/votes", 404),
    ], [answer.text for _, answer in found]


def test_the_examples_of_manifests_are_taken(demo: Path) -> None:
    """That of questions named no suite, so that it was refused as it stood."""
    with client_in(demo) as client:
        found = {family: client.post("/api/evaluations", json=one) for family, one in MANIFEST_EXAMPLES.items()}
    assert {family: answer.status_code for family, answer in found.items()} == dict.fromkeys(
        ("games", "survey", "rubric", "qa"), 202
    ), {family: answer.text for family, answer in found.items()}
