"""Personas over HTTP: made as drafts, changed as further versions, approved step by step, and then known to every command."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assets.games.game_catalog import load_known_personas
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.personas import Player, require_approved
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.made.made_games import MODEL_A

PATIENT: dict[str, Any] = {
    "id": "patient",
    "display_name": "Patient",
    "system_prompt": "You wait.",
    "traits": {"risk": "low", "moves": 3},
}
PERSONAS = "/api/personas"
PATH = f"{PERSONAS}/patient"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_in(tmp_path, "operator") as found:
        yield found


def changed(client: TestClient, **fields: Any) -> Any:
    etag = client.get(PATH).headers["etag"]
    return client.put(PATH, json={**PATIENT, **fields}, headers={"If-Match": etag})


def test_a_persona_is_made_as_a_draft(client: TestClient) -> None:
    answer = client.post(PERSONAS, json=PATIENT)
    assert (answer.status_code, answer.headers["location"]) == (201, PATH)
    assert answer.json() == {**PATIENT, "version": 1, "status": "draft"}
    shown = client.get(PATH)
    assert (shown.status_code, shown.json(), shown.headers["etag"]) == (200, answer.json(), answer.headers["etag"])


def test_an_id_that_is_there_is_refused_also_one_of_a_file(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    for name in ("patient", "bold"):
        answer = client.post(PERSONAS, json={**PATIENT, "id": name})
        assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
        assert f"the persona {name} already exists" in answer.json()["detail"]


FAULTY = {
    "no id": ({key: value for key, value in PATIENT.items() if key != "id"}, "id", "is missing"),
    "a number as id": ({**PATIENT, "id": 3}, "id", "got 3; allowed: text"),
    "no text": ({**PATIENT, "system_prompt": " "}, "system_prompt", "allowed: at least 1 character"),
    "an unknown field": ({**PATIENT, "mood": "x"}, "mood", "unknown key; known: id, display_name, system_prompt, traits"),
    "a trait of no kind": ({**PATIENT, "traits": {"risk": []}}, "traits.risk", "got []"),
    "a list": ([PATIENT], "body", "allowed: application/json, a mapping with id"),
    "null": (None, "body", "is missing"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_faults_are_reported_with_path_and_what_is_allowed(client: TestClient, case: str) -> None:
    body, path, message = FAULTY[case]
    answer = client.post(PERSONAS, json=body)
    assert answer.status_code == 422
    assert any(one["path"].startswith(path) and message in one["message"] for one in answer.json()["errors"]), answer.json()


def test_unknown_fields_and_other_faults_are_reported_at_once(client: TestClient) -> None:
    answer = client.post(PERSONAS, json={**PATIENT, "mood": "x", "id": "a b"})
    assert [one["path"] for one in answer.json()["errors"]] == ["mood", "id"]


def test_a_change_is_the_next_version_and_the_old_one_stays_readable(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    first = client.get(PATH)
    client.post(f"{PATH}/status", json={"status": "approved"})
    answer = changed(client, system_prompt="You wait long.")
    assert answer.status_code == 200
    assert answer.json() == {**PATIENT, "system_prompt": "You wait long.", "version": 2, "status": "draft"}
    assert client.get(PATH).headers["etag"] == answer.headers["etag"]
    assert client.get(PATH, params={"version": 1}).json() == {**first.json(), "status": "approved"}
    assert client.get(PATH, params={"version": 3}).status_code == 404
    assert client.get(PATH, params={"version": 0}).status_code == 422


def test_a_change_needs_the_tag_of_the_latest_state(client: TestClient) -> None:
    made = client.post(PERSONAS, json=PATIENT)
    assert client.put(PATH, json=PATIENT).status_code == 428
    stale = client.put(PATH, json=PATIENT, headers={"If-Match": 'W/"0"'})
    assert (stale.status_code, stale.headers["etag"]) == (412, made.headers["etag"])
    client.post(f"{PATH}/status", json={"status": "approved"})
    assert client.put(PATH, json=PATIENT, headers={"If-Match": made.headers["etag"]}).status_code == 412
    assert client.put(PATH, json=PATIENT, headers={"If-Match": "*"}).status_code == 200
    assert client.put(f"{PERSONAS}/nobody", json=PATIENT, headers={"If-Match": "*"}).status_code == 404
    other = client.put(PATH, json={**PATIENT, "id": "other"}, headers={"If-Match": "*"})
    assert (other.status_code, other.json()["errors"][0]["path"]) == (422, "id")
    assert client.put(PATH, json={}, headers={"If-Match": "*"}).status_code == 422


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
    path = f"{PATH}/status"
    refused = client.post(path, json={"status": "retired"})
    assert (refused.status_code, refused.json()["allowed"]) == (409, ["approved"])
    assert client.post(path, json={"status": "draft"}).status_code == 409
    approved = client.post(path, json={"status": "approved"})
    assert (approved.status_code, approved.json()["status"]) == (200, "approved")
    assert approved.headers["etag"] == client.get(PATH).headers["etag"]
    assert client.post(path, json={"status": "approved"}).json()["allowed"] == ["retired"]
    assert client.post(path, json={"status": "retired"}).status_code == 200
    last = client.post(path, json={"status": "approved"})
    assert (last.status_code, last.json()["allowed"]) == (409, [])


def test_a_status_is_of_one_version_and_of_what_is_there(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    changed(client, display_name="P")
    path = f"{PATH}/status"
    assert client.post(path, json={"status": "approved", "version": 1}).status_code == 200
    assert client.get(PATH).json()["status"] == "draft"
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
    client.post(f"{PATH}/status", json={"status": "approved"})
    assert client.get(PERSONAS, headers={"If-None-Match": whole.headers["etag"]}).status_code == 200
    for wrong in ({"status": "good"}, {"limit": 0}, {"limit": 1001}, {"limit": "x"}):
        assert client.get(PERSONAS, params=wrong).status_code == 422


def test_who_made_and_approved_a_version_can_be_read(client: TestClient) -> None:
    client.post(PERSONAS, json=PATIENT)
    client.post(f"{PATH}/status", json={"status": "approved"})
    (told,) = client.get(f"{PATH}/versions").json()["versions"]
    assert (told["version"], told["status"], told["from"], told["made_by"]) == (1, "approved", "store", "operator")
    assert [(one["status"], one["changed_by"]) for one in told["statuses"]] == [("draft", "operator"), ("approved", "operator")]
    (shipped,) = client.get(f"{PERSONAS}/bold/versions").json()["versions"]
    assert (shipped["from"], shipped["made_by"], shipped["statuses"]) == ("file", None, [])
    for path in (f"{PERSONAS}/nobody", f"{PERSONAS}/nobody/versions"):
        assert client.get(path, headers={"If-None-Match": "*"}).status_code == 404


def test_a_persona_approved_over_http_may_play(client: TestClient, tmp_path: Path) -> None:
    client.post(PERSONAS, json=PATIENT)
    client.post(f"{PATH}/status", json={"status": "approved"})
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
        answers.append(own.request(method, PATH if method == "PUT" else PERSONAS, json=body, headers=headers).status_code)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ([200, 412] if method == "PUT" else [201, 409])
    assert len(client.get(f"{PATH}/versions").json()["versions"]) == (2 if method == "PUT" else 1)


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
        assert served.get(PATH).json()["system_prompt"] == "You wait."
        told = [one for one in served.get("/api/health").json()["problems"] if "patient" in one]
        page = served.get("/personas/patient").text
        assert served.get("/new").status_code == 200
    assert len(told) == 1
    assert "version 1 of the persona patient " in told[0]
    assert "allowed: another id or a higher version in the file" in page
