"""Personas and scenarios over HTTP: versions, statuses and files; no scenario that its engine cannot play, and no danger to the server."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.api.documents.document_history import SCENARIOS as SCENARIO_KIND
from dtef_pipeline.api.documents.document_history import check_engine, import_documents
from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.pack_files import check_manifest_engine, check_trial_game, write_document_lines
from dtef_pipeline.games.packs import adapters, pack
from dtef_pipeline.games.personas import Player, require_approved
from resources.votes.game_documents import GameDocumentStore
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.made.made_games import MODEL_A

PATIENT: dict[str, Any] = {
    "id": "patient",
    "display_name": "Patient",
    "system_prompt": "You wait.",
    "traits": {"risk": "low", "moves": 3},
}
PERSONAS = "/api/personas"
PERSONA_PATH = f"{PERSONAS}/patient"


def changed(client: TestClient, **fields: Any) -> Any:
    etag = client.get(PERSONA_PATH).headers["etag"]
    return client.put(PERSONA_PATH, json={**PATIENT, **fields}, headers={"If-Match": etag})


def test_a_persona_is_made_as_a_draft(client: TestClient) -> None:
    answer = client.post(PERSONAS, json=PATIENT)
    assert (answer.status_code, answer.headers["location"]) == (201, PERSONA_PATH)
    assert answer.json() == {**PATIENT, "version": 1, "status": "draft"}
    shown = client.get(PERSONA_PATH)
    assert (shown.status_code, shown.json(), shown.headers["etag"]) == (200, answer.json(), answer.headers["etag"])


def test_an_id_that_is_there_is_refused_also_one_of_a_file(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    for name in ("patient", "bold"):
        answer = client.post(PERSONAS, json={**PATIENT, "id": name})
        assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
        assert f"the persona {name} already exists" in answer.json()["detail"]


FAULTY_PERSONAS = {
    "no id": ({key: value for key, value in PATIENT.items() if key != "id"}, "id", "is missing"),
    "a number as id": ({**PATIENT, "id": 3}, "id", "got 3; allowed: text"),
    "no text": ({**PATIENT, "system_prompt": " "}, "system_prompt", "allowed: at least 1 character"),
    "an unknown field": ({**PATIENT, "mood": "x"}, "mood", "unknown key; known: id, display_name, system_prompt, traits"),
    "a trait of no kind": ({**PATIENT, "traits": {"risk": []}}, "traits.risk", "got []"),
    "a list": ([PATIENT], "body", "allowed: application/json, a mapping with id"),
    "null": (None, "body", "is missing"),
}


def test_unknown_fields_and_other_faults_are_reported_at_once(client: TestClient) -> None:
    answer = client.post(PERSONAS, json={**PATIENT, "mood": "x", "id": "a b"})
    assert [one["path"] for one in answer.json()["errors"]] == ["mood", "id"]


def test_a_change_is_the_next_version_and_the_old_one_stays_readable(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    first = client.get(PERSONA_PATH)
    client.post(f"{PERSONA_PATH}/status", json={"status": "approved"})
    answer = changed(client, system_prompt="You wait long.")
    assert answer.status_code == 200
    assert answer.json() == {**PATIENT, "system_prompt": "You wait long.", "version": 2, "status": "draft"}
    assert client.get(PERSONA_PATH).headers["etag"] == answer.headers["etag"]
    assert client.get(PERSONA_PATH, params={"version": 1}).json() == {**first.json(), "status": "approved"}
    assert client.get(PERSONA_PATH, params={"version": 3}).status_code == 404
    assert client.get(PERSONA_PATH, params={"version": 0}).status_code == 422


def test_a_change_needs_the_tag_of_the_latest_state(client: TestClient) -> None:
    made = client.post(PERSONAS, json=PATIENT)
    assert client.put(PERSONA_PATH, json=PATIENT).status_code == 428
    stale = client.put(PERSONA_PATH, json=PATIENT, headers={"If-Match": 'W/"0"'})
    assert (stale.status_code, stale.headers["etag"]) == (412, made.headers["etag"])
    client.post(f"{PERSONA_PATH}/status", json={"status": "approved"})
    assert client.put(PERSONA_PATH, json=PATIENT, headers={"If-Match": made.headers["etag"]}).status_code == 412
    assert client.put(PERSONA_PATH, json=PATIENT, headers={"If-Match": "*"}).status_code == 200
    assert client.put(f"{PERSONAS}/nobody", json=PATIENT, headers={"If-Match": "*"}).status_code == 404
    other = client.put(PERSONA_PATH, json={**PATIENT, "id": "other"}, headers={"If-Match": "*"})
    assert (other.status_code, other.json()["errors"][0]["path"]) == (422, "id")
    assert client.put(PERSONA_PATH, json={}, headers={"If-Match": "*"}).status_code == 422


def test_a_persona_of_a_file_gets_a_second_version(client: TestClient, tmp_path: Path) -> None:
    path = f"{PERSONAS}/bold"
    first = client.get(path)
    body = {name: value for name, value in first.json().items() if name not in ("version", "status")}
    answer = client.put(path, json={**body, "traits": {}}, headers={"If-Match": first.headers["etag"]})
    assert (answer.status_code, answer.json()["version"], answer.json()["status"]) == (200, 2, "draft")
    found = load_known_personas(settings_in(tmp_path))
    assert (found["bold"].version, found["bold:v2"].status) == (1, "draft")


def test_statuses_go_one_step_at_a_time(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    path = f"{PERSONA_PATH}/status"
    refused = client.post(path, json={"status": "retired"})
    assert (refused.status_code, refused.json()["allowed"]) == (409, ["approved"])
    assert client.post(path, json={"status": "draft"}).status_code == 409
    approved = client.post(path, json={"status": "approved"})
    assert (approved.status_code, approved.json()["status"]) == (200, "approved")
    assert approved.headers["etag"] == client.get(PERSONA_PATH).headers["etag"]
    assert client.post(path, json={"status": "approved"}).json()["allowed"] == ["retired"]
    assert client.post(path, json={"status": "retired"}).status_code == 200
    last = client.post(path, json={"status": "approved"})
    assert (last.status_code, last.json()["allowed"]) == (409, [])


def test_a_status_is_of_one_version_and_of_what_is_there(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    changed(client, display_name="P")
    path = f"{PERSONA_PATH}/status"
    assert client.post(path, json={"status": "approved", "version": 1}).status_code == 200
    assert client.get(PERSONA_PATH).json()["status"] == "draft"
    assert client.post(path, json={"status": "approved", "version": 9}).status_code == 404
    assert client.post(f"{PERSONAS}/nobody/status", json={"status": "approved"}).status_code == 404
    assert client.post(path, json={"status": "approved"}, headers={"If-Match": '"x"'}).status_code == 412
    faulty = client.post(path, json={"status": "good"})
    assert (faulty.status_code, faulty.json()["errors"]) == (
        422,
        [{"path": "status", "message": "got 'good'; allowed: draft, approved, retired"}],
    )
    for body in ({}, {"status": "approved", "version": 0}, {"status": "approved", "who": "x"}, []):
        assert client.post(path, json=body).status_code == 422


def test_the_list_has_pages_statuses_and_a_tag(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    whole = client.get(PERSONAS)
    ids = [one["id"] for one in whole.json()["personas"]]
    assert ids == sorted({*ids, "bold", "patient"})
    assert whole.json()["next"] is None
    drafts = client.get(PERSONAS, params={"status": "draft"}).json()["personas"]
    assert [one["id"] for one in drafts] == ["patient"]
    seen, cursor = list[str](), None
    while True:
        page = client.get(PERSONAS, params={"limit": 1, **({"cursor": cursor} if cursor else {})}).json()
        seen += [one["id"] for one in page["personas"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == ids
    same = client.get(PERSONAS, headers={"If-None-Match": whole.headers["etag"]})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", whole.headers["etag"])
    client.post(f"{PERSONA_PATH}/status", json={"status": "approved"})
    assert client.get(PERSONAS, headers={"If-None-Match": whole.headers["etag"]}).status_code == 200
    for wrong in ({"status": "good"}, {"limit": 0}, {"limit": 1001}, {"limit": "x"}):
        assert client.get(PERSONAS, params=wrong).status_code == 422


def test_who_made_and_approved_a_version_can_be_read(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    client.post(f"{PERSONA_PATH}/status", json={"status": "approved"})
    (told,) = client.get(f"{PERSONA_PATH}/versions").json()["versions"]
    assert (told["version"], told["status"], told["from"], told["made_by"]) == (1, "approved", "store", "operator")
    assert [(one["status"], one["changed_by"]) for one in told["statuses"]] == [("draft", "operator"), ("approved", "operator")]
    (shipped,) = client.get(f"{PERSONAS}/bold/versions").json()["versions"]
    assert (shipped["from"], shipped["made_by"], shipped["statuses"]) == ("file", None, [])
    for path in (f"{PERSONAS}/nobody", f"{PERSONAS}/nobody/versions"):
        assert client.get(path, headers={"If-None-Match": "*"}).status_code == 404


def test_a_persona_approved_over_http_may_play(client: TestClient, tmp_path: Path) -> None:
    client.post(PERSONAS, json=PATIENT)
    client.post(f"{PERSONA_PATH}/status", json={"status": "approved"})
    found = load_known_personas(settings_in(tmp_path))["patient"]
    require_approved([Player(model=MODEL_A, persona=found)])
    assert (found.name, found.system_prompt, found.traits) == ("patient:v1", "You wait.", PATIENT["traits"])


def test_a_shipped_persona_that_is_retired_over_http_plays_no_more(client: TestClient, tmp_path: Path) -> None:
    client.post(f"{PERSONAS}/bold/status", json={"status": "retired"})
    assert load_known_personas(settings_in(tmp_path))["bold"].status == "retired"


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_of_two_at_once_one_is_stored(client: TestClient, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    headers = {}
    if method == "PUT":
        headers["If-Match"] = client.post(PERSONAS, json=PATIENT).headers["etag"]
    both_have_looked = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(document_history, "_require_playable", lambda *_: both_have_looked.wait())
    answers = list[int]()

    def send(number: int) -> None:
        own = TestClient(client.app, headers=client.headers)
        body = {**PATIENT, "display_name": f"By {number}"}
        answers.append(
            own.request(method, PERSONA_PATH if method == "PUT" else PERSONAS, json=body, headers=headers).status_code
        )

    threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ([200, 412] if method == "PUT" else [201, 409])
    assert len(client.get(f"{PERSONA_PATH}/versions").json()["versions"]) == (2 if method == "PUT" else 1)


def test_a_file_that_contradicts_a_version_made_over_http_hides_no_persona(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One such file stopped every list of personas and every page, with 503."""
    client.post(PERSONAS, json=PATIENT)
    folder = tmp_path / "personas"
    folder.mkdir()
    written = {**PATIENT, "version": 1, "system_prompt": "You hurry."}
    (folder / "patient.yaml").write_text(json.dumps(written), encoding="utf-8")
    with_file = settings_in(tmp_path, DTEF_PERSONAS=str(folder))
    with pytest.raises(ConfigError, match="allowed: another id or a higher version in the file"):
        load_known_personas(with_file)
    monkeypatch.setattr("tests.dtef_pipeline.api.made.settings_in", lambda _: with_file)
    with client_in(tmp_path, "operator") as served:
        assert [one["id"] for one in served.get(PERSONAS).json()["personas"]] == ["bold", "cautious", "patient", "plain-spoken"]
        assert served.get(PERSONA_PATH).json()["system_prompt"] == "You wait."
        told = [one for one in served.get("/api/health").json()["problems"] if "patient" in one]
        page = served.get("/personas/patient").text
        assert served.get("/new").status_code == 200
    assert len(told) == 1
    assert "version 1 of the persona patient " in told[0]
    assert "allowed: another id or a higher version in the file" in page


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


@pytest.mark.parametrize(
    ("place", "case"), [*product([PERSONAS], FAULTY_PERSONAS.values()), *product([SCENARIOS], FAULTY.values())]
)
def test_faults_are_reported_with_path_and_what_is_allowed(client: TestClient, place: str, case: tuple[Any, str, str]) -> None:
    body, path, message = case
    answer = client.post(place, json=body)
    assert answer.status_code == 422
    assert any(one["path"].startswith(path) and message in one["message"] for one in answer.json()["errors"]), answer.json()


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
