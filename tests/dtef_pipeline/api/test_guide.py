"""The API accepts what docs/how-to/api.md sends with curl, and the page for new evaluations offers the models that can be asked."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

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
    page = (ROOT / "docs" / "how-to" / "api.md").read_text(encoding="utf-8")
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


def test_models_to_choose_from_write_texts_and_say_where_they_have_no_key(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedders stood among them, and models without a key looked like the others."""
    _keep_keys(monkeypatch, ("OPENAI",))
    monkeypatch.setattr("resources.gateway.local_model.LocalTransport.problem", lambda *_: "the package x is not installed")
    with client_in(demo) as client:
        page = client.get("/new", headers={"Accept": "text/html"}).text
    boxes = dict(re.findall(r'<input type="checkbox" name="models" value="([^"]+)"> (.*?)</label>', page))
    marks = {name: re.sub("<[^>]*>", "", said).removeprefix(name).strip() for name, said in boxes.items()}
    assert (marks["gpt-4.1"], marks["claude-haiku-4.5"], marks["local/smollm2-135m"]) == ("", "no key", "not installed")
    assert "environment variable ANTHROPIC_API_KEY is not set" in boxes["claude-haiku-4.5"]
    assert not {"local/minilm-l6-int8", "text-embedding-3-small"} & set(boxes)


def _keep_keys(monkeypatch: pytest.MonkeyPatch, providers: tuple[str, ...]) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    for provider in providers:
        monkeypatch.setenv(f"{provider}_API_KEY", "no key")
