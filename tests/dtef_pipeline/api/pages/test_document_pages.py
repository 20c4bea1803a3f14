"""Personas and scenarios on pages: made, changed and approved, and a change meanwhile is noticed."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi.testclient import TestClient

from tests.dtef_pipeline.api.browsed import (
    HOSTILE,
    OWN_ORIGIN,
    assert_inert,
    browsing,
    faults_beside,
    hidden_fields,
    texts_of,
    typed_in,
)

PERSONA = {"id": "calm", "display_name": "Calm", "system_prompt": "Stay calm.", "traits": {"risk": "low", "patience": 3}}


def filled_in(**changes: object) -> dict[str, str]:
    """The form of a persona."""
    return {"document": json.dumps({**PERSONA, **changes})}


def test_a_persona_is_made_approved_and_retired(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        assert client.post("/personas", data=filled_in(), headers=OWN_ORIGIN).headers["location"] == "/personas/calm"
        for step in ("Approve", "Retire"):
            page = client.get("/personas/calm").text
            assert step in page
            sent = hidden_fields(page, "/personas/calm/status")
            answer = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
            assert answer.status_code == 303, answer.text
        page = client.get("/personas/calm").text
        assert "patience: 3" in page
        assert "approved by operator" in " ".join(texts_of(page, ".//td"))
        assert 'action="/personas/calm/status"' not in page
        assert "/personas/calm" in client.get("/personas?status=retired").text
        assert "/personas/calm" not in client.get("/personas?status=approved").text
        assert client.get("/personas?status=odd").status_code == 422


def test_a_change_makes_a_version_and_one_of_before_is_reported_of_it(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        client.post("/personas", data=filled_in(), headers=OWN_ORIGIN)
        opened = hidden_fields(client.get("/personas/calm").text, "/personas/calm")
        first = {**opened, **filled_in(system_prompt="Stay calmer.")}
        assert client.post("/personas/calm", data=first, headers=OWN_ORIGIN).status_code == 303
        late = {**opened, **filled_in(system_prompt="Stay calmest.")}
        refused = client.post("/personas/calm", data=late, headers=OWN_ORIGIN)
        assert refused.status_code == 412
        assert "it was changed after you opened this form" in refused.text
        assert "Stay calmest." in refused.text
        again = {**late, **hidden_fields(refused.text, "/personas/calm")}
        assert client.post("/personas/calm", data=again, headers=OWN_ORIGIN).status_code == 303
        assert "Stay calmest." in client.get("/personas/calm").text
        assert "Stay calm." in client.get("/personas/calm?version=1").text
        assert client.get("/personas/calm?version=9").status_code == 404


def test_a_step_on_what_was_changed_meanwhile_does_nothing(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        client.post("/personas", data=filled_in(), headers=OWN_ORIGIN)
        sent = hidden_fields(client.get("/personas/calm").text, "/personas/calm/status")
        assert client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN).status_code == 303
        again = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
        assert again.status_code == 412
        assert "nothing was done" in again.text
        for wrong in ({}, {"status": "odd"}, {**sent, "version": "x"}):
            assert client.post("/personas/calm/status", data=wrong, headers=OWN_ORIGIN).status_code in (409, 412, 422)


def test_faults_of_a_persona_stand_beside_its_text(tmp_path: Path) -> None:
    wrong = filled_in(id=HOSTILE, display_name="", system_prompt=HOSTILE, traits={HOSTILE: [1]})
    with browsing(tmp_path) as client:
        answer = client.post("/personas", data=wrong, headers=OWN_ORIGIN)
        assert answer.status_code == 422
        faults = " ".join(faults_beside(answer.text)["document"])
        assert all(field in faults for field in ("id", "display_name", "traits"))
        assert_inert(answer.text)
        taken = client.post("/personas", data=filled_in(id="bold"), headers=OWN_ORIGIN)
        assert taken.status_code == 409
        assert faults_beside(taken.text) == {"document": ["the persona bold already exists; allowed: another id"]}


def test_a_scenario_is_changed_and_promoted(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        manifest = client.get("/api/scenarios/poker/kuhn").json()
        kept = {name: value for name, value in manifest.items() if name not in ("version", "status")}
        new = {**kept, "id": "poker/tiny", "adapter": "poker/kuhn"}
        made = client.post("/scenarios", data={"document": json.dumps(new)}, headers=OWN_ORIGIN)
        assert made.headers["location"] == "/scenarios/poker/tiny"
        opened = hidden_fields(client.get("/scenarios/poker/tiny").text, "/scenarios/poker/tiny")
        changed = {**opened, "document": json.dumps({**new, "description": "A tiny game."})}
        assert client.post("/scenarios/poker/tiny", data=changed, headers=OWN_ORIGIN).status_code == 303
        page = client.get("/scenarios/poker/tiny").text
        assert "A tiny game." in page
        sent = hidden_fields(page, "/scenarios/poker/tiny/status")
        assert client.post("/scenarios/poker/tiny/status", data=sent, headers=OWN_ORIGIN).status_code == 303
        assert "/scenarios/poker/tiny" in client.get("/scenarios?status=production").text


def test_a_manifest_that_is_no_json_is_reported_with_line_and_column_beside_it(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        for path in ("/scenarios", "/scenarios/poker/kuhn"):
            sent = {"document": '{"id": 1,\n  "x" 2}', "seen": "x"}
            answer = client.post(path, data=sent, headers=OWN_ORIGIN)
            assert answer.status_code == 422
            said = "not valid JSON in line 2, column 7: Expecting ':' delimiter, before '2}'"
            assert faults_beside(answer.text) == {"document": [said]}
            assert typed_in(answer.text, "document").endswith('"x" 2}')


def moved(client: TestClient, address: str) -> str:
    """The page after the step that the page at an address offers."""
    sent = hidden_fields(client.get(address).text, "/personas/calm/status")
    answer = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
    assert answer.status_code == 303, answer.text
    return client.get(answer.headers["location"]).text


def test_the_list_tells_the_version_in_play_where_the_latest_is_a_draft(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        client.post("/personas", data=filled_in(), headers=OWN_ORIGIN)
        moved(client, "/personas/calm")
        opened = hidden_fields(client.get("/personas/calm").text, "/personas/calm")
        client.post("/personas/calm", data={**opened, **filled_in(system_prompt="Calmer.")}, headers=OWN_ORIGIN)
        assert "version 1 (approved) is in use" in client.get("/personas").text
        assert "(calm, version 1)" in client.get("/new").text
        moved(client, "/personas/calm?version=1")
        assert "version 1 is retired, and no version is in use" in client.get("/personas").text
