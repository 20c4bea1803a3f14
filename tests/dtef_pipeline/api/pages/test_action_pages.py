"""The log of actions says what each changed."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.api.pages.vote_pages import ChangedMember, changes
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, texts_of
from tests.dtef_pipeline.api.pages.test_document_pages import PERSONA, moved


def test_only_members_that_differ_are_reported_those_of_objects_one_by_one() -> None:
    before = {"status": "draft", "traits": {"risk": "low", "age": 3}, "name": "Calm", "gone": [1]}
    after = {"status": "approved", "traits": {"risk": "high", "age": 3}, "name": "Calm", "new": True}
    assert changes(before, after) == [
        ChangedMember("status", "draft", "approved"),
        ChangedMember("traits.risk", "low", "high"),
        ChangedMember("gone", "[1]", None),
        ChangedMember("new", None, "true"),
    ]
    assert changes({}, {}) == []


def test_an_approval_is_one_line(tmp_path: Path) -> None:
    with browsing(tmp_path, "admin") as client:
        client.post("/api/personas", json={**PERSONA, "system_prompt": "<b>Stay</b> calm."}, headers=OWN_ORIGIN)
        moved(client, "/personas/calm")
        markup = client.get("/actions").text
    approved, made, *_ = texts_of(markup, ".//tbody/tr")
    assert approved.endswith("status draft approved")
    assert "<b>Stay</b> calm." in made
    assert "<del><bdi>draft</bdi></del> <ins><bdi>approved</bdi></ins>" in markup
