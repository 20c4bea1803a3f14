"""Personas and scenarios on pages: their versions and steps, and a change meanwhile is noticed."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from dtef_pipeline.api.pages.vote_pages import changes
from tests.dtef_pipeline.api.browsed import (
    HOSTILE,
    OWN_ORIGIN,
    assert_inert,
    browsing,
    hidden_fields,
    texts_of,
)

PERSONA = {"id": "calm", "display_name": "Calm", "system_prompt": "Stay calm.", "traits": {"risk": "low", "patience": 3}}


def new_version(client: TestClient, **changes: object) -> None:
    """Make the persona, or its next version, over HTTP."""
    answer = client.post("/api/personas", json=PERSONA, headers=OWN_ORIGIN)
    if answer.status_code != 201:
        changed = client.put("/api/personas/calm", json={**PERSONA, **changes}, headers={"If-Match": "*", **OWN_ORIGIN})
        assert changed.status_code == 200, changed.text


def test_a_persona_is_made_approved_and_retired(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
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


def test_each_version_has_its_page(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        new_version(client, system_prompt=HOSTILE.replace("\x00", ""))
        shown = client.get("/personas/calm").text
        assert "&lt;script&gt;" in shown
        assert_inert(shown)
        assert "Stay calm." in client.get("/personas/calm?version=1").text
        assert client.get("/personas/calm?version=9").status_code == 404


def test_a_step_on_what_was_changed_meanwhile_does_nothing(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        sent = hidden_fields(client.get("/personas/calm").text, "/personas/calm/status")
        assert client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN).status_code == 303
        again = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
        assert again.status_code == 412
        assert "nothing was done" in again.text
        for wrong in ({}, {"status": "odd"}, {**sent, "version": "x"}):
            assert client.post("/personas/calm/status", data=wrong, headers=OWN_ORIGIN).status_code in (409, 412, 422)


def moved(client: TestClient, address: str) -> str:
    """The page after the step that the page at an address offers."""
    sent = hidden_fields(client.get(address).text, "/personas/calm/status")
    answer = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
    assert answer.status_code == 303, answer.text
    return client.get(answer.headers["location"]).text


def test_the_list_tells_the_version_in_play_where_the_latest_is_a_draft(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        moved(client, "/personas/calm")
        new_version(client, system_prompt="Calmer.")
        assert "version 1 (approved) is in use" in client.get("/personas").text
        assert "(calm, version 1)" in client.get("/new").text
        moved(client, "/personas/calm?version=1")
        assert "version 1 is retired, and no version is in use" in client.get("/personas").text


def test_only_members_that_differ_are_reported_those_of_objects_one_by_one() -> None:
    before = {"status": "draft", "traits": {"risk": "low", "age": 3}, "name": "Calm", "gone": [1]}
    after = {"status": "approved", "traits": {"risk": "high", "age": 3}, "name": "Calm", "new": True}
    assert list(changes(before, after)) == [
        ("status", "draft", "approved"),
        ("traits.risk", "low", "high"),
        ("gone", [1], None),
        ("new", None, True),
    ]
    assert list(changes({}, {})) == []


def test_an_approval_is_one_line(tmp_path: Path) -> None:
    with browsing(tmp_path, "admin") as client:
        client.post("/api/personas", json={**PERSONA, "system_prompt": "<b>Stay</b> calm."}, headers=OWN_ORIGIN)
        moved(client, "/personas/calm")
        markup = client.get("/actions").text
    approved, made, *_ = texts_of(markup, ".//tbody/tr")
    assert approved.endswith("status draft approved")
    assert "<b>Stay</b> calm." in made
    assert "<del><bdi>draft</bdi></del> <ins><bdi>approved</bdi></ins>" in markup
