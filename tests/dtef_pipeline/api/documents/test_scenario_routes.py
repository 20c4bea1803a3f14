"""Scenarios over HTTP: from a template to production, refused where no engine can play them, and never a danger to the server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.api.documents.document_history import SCENARIOS as SCENARIO_KIND
from dtef_pipeline.api.documents.document_history import check_engine, import_documents
from dtef_pipeline.errors import SourceError
from dtef_pipeline.games.document_lines import write_document_lines
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.pack_files import check_manifest_engine, check_trial_game
from dtef_pipeline.games.packs import adapters, pack
from resources.votes.game_documents import GameDocumentStore
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import client_in, settings_in

SCENARIOS = "/api/scenarios"
KUHN = read_manifest(ROOT / "data" / "scenarios" / "poker" / "kuhn.yaml")
FAST: dict[str, Any] = {
    **{name: value for name, value in KUHN.model_dump(mode="json").items() if name not in ("version", "status")},
    "id": "poker/fast",
    "adapter": "poker/kuhn",
}
PATH = f"{SCENARIOS}/poker/fast"


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[TestClient]:
    """With engines that are asked."""
    with client_in(tmp_path, "operator") as found:
        yield found


@pytest.fixture
def client(asked: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """With engines that find nothing wrong: each takes half a second to ask."""
    monkeypatch.setattr(document_history, "check_engine", lambda _: [])
    return asked


def test_a_template_is_made_approved_and_played(asked: TestClient, tmp_path: Path) -> None:
    templates = asked.get(f"{SCENARIOS}/templates").json()["templates"]
    played = {game.adapter_name for game in load_known_scenarios(settings_in(tmp_path)).values()}
    assert [one["adapter"] for one in templates] == sorted(played & set(adapters()))
    (kuhn,) = [one["manifest"] for one in templates if one["adapter"] == "poker/kuhn"]
    made = asked.post(SCENARIOS, json={**kuhn, "id": "poker/fast"})
    assert (made.status_code, made.headers["location"]) == (201, PATH)
    assert (made.json()["version"], made.json()["status"]) == (1, "experimental")
    assert asked.post(f"{PATH}/status", json={"status": "production"}).json()["status"] == "production"
    found = load_known_scenarios(settings_in(tmp_path))
    assert found["poker/fast"].status == "production"
    assert list(check_trial_game(pack("poker/fast", found))) == []


def test_every_template_is_a_manifest_that_can_be_sent(client: TestClient) -> None:
    for one in client.get(f"{SCENARIOS}/templates").json()["templates"]:
        assert client.post(SCENARIOS, json=one["manifest"]).status_code == 201
    again = client.get(f"{SCENARIOS}/templates").json()["templates"]
    assert {one["manifest"]["id"][-2:] for one in again} == {"-3"}


def test_an_unknown_engine_is_reported_by_the_server(asked: TestClient) -> None:
    answer = asked.post(SCENARIOS, json={**FAST, "adapter": "poker/bridge"})
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["path"] == "adapter"
    assert "poker/kuhn" in fault["message"]
    assert "poker/bridge; allowed: " in fault["message"]


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"opponents": ["shark"]}, "opponents", "the opponent shark; allowed: always-bet"),
        ({"evaluation": {"algorithmic": {"luck": 1}}}, "evaluation.algorithmic", "luck: not a metric"),
        ({"severities": {"swearing": "low"}}, "severities", "swearing: not a flag of the scenario"),
    ],
)
def test_what_the_engine_does_not_take_is_reported_with_its_field(fields: dict[str, Any], path: str, message: str) -> None:
    manifest = ScenarioManifest.model_validate({**FAST, "version": 1, "status": "experimental", **fields})
    (fault,) = check_manifest_engine(manifest)
    assert ".".join(map(str, fault.place)) == path
    assert message in fault.message


FAULTY: dict[str, tuple[Any, str, str]] = {
    "an id without a league": ({**FAST, "id": "fast"}, "id", "allowed: pattern"),
    "no seats": ({**FAST, "seats": []}, "seats", "at least 1"),
    "a limit": ({**FAST, "turn_limit": 0}, "turn_limit", "got 0; allowed: 1 to 1,000"),
    "a version": ({**FAST, "version": 2}, "version", "unknown key; known: id, description"),
    "seeds beyond all": ({**FAST, "seeds": {"first": 10**30, "count": 1}}, "seeds.first", "allowed: at most 2147483647"),
    "too many seeds": ({**FAST, "seeds": {"first": 1, "count": 10**7}}, "seeds.count", "allowed: at most 100000"),
    "part of a part": ({**FAST, "evaluation": {"robot": 1}}, "evaluation.robot", "unknown key; known: algorithmic, human"),
    "a text": ("poker/fast", "body", 'got "poker/fast"'),
}


@pytest.mark.parametrize("case", FAULTY)
def test_faults_are_reported_with_path_and_what_is_allowed(client: TestClient, case: str) -> None:
    body, path, message = FAULTY[case]
    answer = client.post(SCENARIOS, json=body)
    assert answer.status_code == 422
    assert any(one["path"] == path and message in one["message"] for one in answer.json()["errors"]), answer.json()


def test_an_id_may_be_sent_with_its_slash_encoded(client: TestClient) -> None:
    plain = client.get(f"{SCENARIOS}/poker/kuhn")
    encoded = client.get(f"{SCENARIOS}/poker%2Fkuhn")
    assert (encoded.status_code, encoded.json()) == (200, plain.json())
    assert client.get(f"{SCENARIOS}/poker%2Fkuhn/versions").status_code == 200
    assert client.get(f"{SCENARIOS}/poker").status_code == 404


def worker(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_an_engine_that_never_ends_is_ended() -> None:
    begun = time.monotonic()
    (fault,) = check_engine(KUHN, 0.5, worker("while True: pass"))
    assert (fault.path, "took longer than 0.5 s" in fault.message) == ("adapter", True)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("program", ["import os; os.abort()", "print('[1]')"])
def test_an_engine_that_takes_its_process_down_is_a_fault_of_the_manifest(program: str) -> None:
    (fault,) = check_engine(KUHN, 20, worker(program))
    assert "failed" in fault.message


def test_what_an_engine_says_at_length_is_cut() -> None:
    told = json.dumps([["adapter", "x" * 100_000]])
    (fault,) = check_engine(KUHN, 20, worker(f"print({told!r})"))
    assert len(fault.message) <= 1000


def described(client: TestClient) -> Any:
    app: Any = client.app
    return app.openapi()["paths"]


def test_the_description_says_what_is_sent(client: TestClient) -> None:
    told = described(client)
    for path, model in ((SCENARIOS, "ScenarioManifest"), ("/api/personas", "Persona")):
        schema = told[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert (schema["title"], {"version", "status"} & {*schema["properties"], *schema["required"]}) == (model, set())
        assert "$ref" not in json.dumps(schema)
    put = told[f"{SCENARIOS}/{{league}}/{{name}}"]["put"]
    assert {one["name"] for one in put["parameters"]} == {"league", "name", "If-Match"}


def test_lines_bring_later_statuses_but_no_scenario_that_its_engine_cannot_play(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    retired = KUHN.model_copy(update={"status": "retired"})
    unplayable = KUHN.model_copy(update={"id": "own/other", "adapter": "poker/kuhn", "settings": {"no": "such"}})
    with GameDocumentStore(settings.responses_url) as store:
        for documents, told in (([unplayable, retired], "in:1: settings"), ([KUHN, retired], "different content")):
            lines = write_document_lines("scenario", documents).encode()
            with pytest.raises(SourceError, match=told):
                import_documents(SCENARIO_KIND, settings, store, lines, "in", "me")
        assert load_known_scenarios(settings)["poker/kuhn"].status == KUHN.status
        lines = write_document_lines("scenario", [retired]).encode()
        added = [import_documents(SCENARIO_KIND, settings, store, lines, "in", "me") for _ in range(2)]
    assert added == [({"scenario_status": 1}, 0), ({}, 1)]
    assert load_known_scenarios(settings)["poker/kuhn"].status == "retired"
