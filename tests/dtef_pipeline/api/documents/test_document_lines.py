"""Personas and scenarios as JSON lines over HTTP: out, into an empty store, and out again as the same bytes; all of a body or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.documents import document_kinds
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in

PERSONA = {"id": "patient", "display_name": "Pätient", "system_prompt": "You\nwait.", "traits": {"risk": "low", "moves": 3}}
PLURALS = ("personas", "scenarios")
LAST = {"personas": ("approved", "retired"), "scenarios": ("production", "retired")}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_in(tmp_path, "operator") as found:
        yield found


@pytest.fixture
def other(tmp_path: Path) -> Iterator[TestClient]:
    """Of a server whose store is empty."""
    (tmp_path / "other").mkdir()
    with client_in(tmp_path / "other", "operator") as found:
        yield found


def new_document(client: TestClient, plural: str) -> dict[str, Any]:
    if plural == "personas":
        return dict(PERSONA)
    (template,) = (
        one["manifest"]
        for one in client.get("/api/scenarios/templates").json()["templates"]
        if one["adapter"] == "negotiation/allocation"
    )
    return {**template, "id": "own/sharing", "adapter": "negotiation/allocation"}


def keep_versions(client: TestClient, plural: str) -> str:
    """Make two versions of a document, the first with its second status, and retire a shipped one; the id."""
    body, (second, last) = new_document(client, plural), LAST[plural]
    path = f"/api/{plural}/{body['id']}"
    assert client.post(f"/api/{plural}", json=body).status_code == 201
    assert client.post(f"{path}/status", json={"status": second}).status_code == 200
    text = "display_name" if plural == "personas" else "description"
    assert client.put(path, json={**body, text: "Another."}, headers={"If-Match": "*"}).status_code == 200
    shipped = f"/api/{plural}/{'bold' if plural == 'personas' else 'poker/leduc'}"
    for status in (second, last):
        client.post(f"{shipped}/status", json={"status": status})
    assert client.get(shipped).json()["status"] == last
    return str(body["id"])


@pytest.mark.parametrize("plural", PLURALS)
def test_lines_go_out_and_in_and_out_as_the_same_bytes(client: TestClient, other: TestClient, plural: str) -> None:
    made = keep_versions(client, plural)
    sent = client.get(f"/api/{plural}.jsonl")
    assert sent.headers["content-type"] == "application/jsonl"
    assert [json.loads(line)["version"] for line in sent.text.splitlines() if json.loads(line)["id"] == made] == [1, 2]
    kind = plural.removesuffix("s")
    first = other.post(f"/api/{plural}.jsonl", content=sent.content)
    assert (first.status_code, first.json()["added"]) == (201, {f"{kind}_version": 2, f"{kind}_status": 1})
    assert other.get(f"/api/{plural}.jsonl").content == sent.content
    again = other.post(f"/api/{plural}.jsonl", content=sent.content)
    assert (again.status_code, again.json()) == (201, {"added": {}, "known": len(sent.text.splitlines())})
    (version, *_) = other.get(f"/api/{plural}/{made}/versions").json()["versions"]
    assert (version["made_by"], [one["status"] for one in version["statuses"]]) == ("operator", [LAST[plural][0]])


def test_of_lines_with_a_fault_nothing_comes_in(client: TestClient, other: TestClient) -> None:
    keep_versions(client, "personas")
    lines = client.get("/api/personas.jsonl").text.splitlines(keepends=True)
    before = other.get("/api/personas.jsonl").content
    whole = json.loads(lines[0])
    field = "display_name"
    faulty = {
        "not valid JSON": "{",
        "kind is not": '{"kind":"vote","schema":1}',
        "version: got 0": json.dumps({**whole, "version": 0}),
        "mood: unknown key": json.dumps({**whole, "mood": 1}),
        f"{field}, or another version": json.dumps({**whole, field: "Something else."}),
        "allowed: at most 2147483647": json.dumps({**whole, "version": 2**31}),
        "line 1 has different content": json.dumps({**whole, field: "x"}),
    }
    for told, line in faulty.items():
        good = lines if told.startswith("line 1") else lines[1:]
        answer = other.post("/api/personas.jsonl", content="".join([*good, "\n", line]).encode())
        assert answer.status_code == 422, answer.text
        (error,) = answer.json()["errors"]
        assert (error["path"], told in error["message"]) == (f"body:{len(good) + 2}", True), error
    assert other.post("/api/personas.jsonl", content="".join(lines).encode() + b"\xff\n").status_code == 422
    assert other.get("/api/personas.jsonl").content == before


def test_an_earlier_status_changes_nothing(client: TestClient) -> None:
    old = client.get("/api/personas.jsonl").content
    keep_versions(client, "personas")
    now = client.get("/api/personas.jsonl").content
    assert client.post("/api/personas.jsonl", content=old).json()["added"] == {}
    assert client.get("/api/personas.jsonl").content == now


def test_a_scenario_that_its_engine_cannot_play_is_refused_with_its_line(client: TestClient) -> None:
    line = json.loads(client.get("/api/scenarios.jsonl").text.splitlines()[0])
    text = json.dumps({**line, "id": "own/other", "settings": {"no": "such"}, "adapter": line["id"]})
    answer = client.post("/api/scenarios.jsonl", content=f"\n{text}\n")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "body:2")
    assert "settings" in answer.json()["detail"]


def test_so_many_new_scenarios_are_tried_at_a_time(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_kinds, "check_engine", lambda _: [])
    line = json.loads(client.get("/api/scenarios.jsonl").text.splitlines()[0])
    lines = [json.dumps({**line, "version": 100 + number}) for number in range(document_kinds.MAX_IMPORTED_SCENARIOS + 1)]
    answer = client.post("/api/scenarios.jsonl", content="\n".join(lines))
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, f"body:{len(lines)}")
    assert client.post("/api/scenarios.jsonl", content="\n".join(lines[:-1])).status_code == 201


def test_imports_stand_in_the_record_of_actions(client: TestClient, other: TestClient) -> None:
    keep_versions(client, "personas")
    other.post("/api/personas.jsonl", content=client.get("/api/personas.jsonl").content)
    admin = {"Authorization": f"Bearer {ROLE_TOKENS['admin']}"}
    (action,) = other.get("/api/feedback/actions", headers=admin).json()["actions"]
    assert (action["user"], action["action"]) == ("operator", "persona_import")
    assert action["after"] == {"file": "HTTP", "new": {"persona_version": 2, "persona_status": 1}}
