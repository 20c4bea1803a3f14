"""Versions and statuses are added and never changed; of two writers who saw the same state one is refused."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dtef_pipeline.errors import StoreError
from resources.evaluations.run_manifests import config_hash
from resources.settings import Settings
from resources.votes.game_documents import (
    NO_DOCUMENTS,
    DocumentChanged,
    GameDocumentStore,
    document_schemas,
    read_documents_if_present,
)
from resources.votes.vote_store import VoteStore
from tests.resources.broken_commits import break_after_commit

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
CALM: dict[str, Any] = {"id": "calm", "version": 1, "status": "draft", "display_name": "C\0lm", "system_prompt": "Wait."}


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'responses.sqlite'}"


def test_looking_makes_no_database(tmp_path: Path) -> None:
    assert read_documents_if_present(url_in(tmp_path)) == NO_DOCUMENTS
    assert read_documents_if_present(str(tmp_path / "responses.sqlite")) == NO_DOCUMENTS
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_responses_alone_has_no_documents(location: str) -> None:
    VoteStore(location).close()
    assert read_documents_if_present(location) == NO_DOCUMENTS


def test_versions_and_statuses_are_kept_in_their_order_and_every_action_is_noted(location: str) -> None:
    with GameDocumentStore(location, lambda: NOW) as store:
        store.add("persona", CALM, "alice", revision=0)
        store.say("persona", {**CALM, "status": "approved"}, "bob", revision=2, before=CALM)
        store.add("persona", {**CALM, "version": 2, "system_prompt": "Go."}, "alice", revision=3, before=CALM)
        found = store.read_all()
    assert read_documents_if_present(location) == found
    assert [(one.version, one.body["system_prompt"], one.who, one.made_at) for one in found.select_kind("persona")] == [
        (1, "Wait.", "alice", NOW),
        (2, "Go.", "alice", NOW),
    ]
    assert found.map_statuses("persona") == {("calm", 1): "approved", ("calm", 2): "draft"}
    assert found.revision("persona", "calm") == 5
    assert found.revision("scenario", "calm") == 0
    with VoteStore(location) as votes:
        actions = votes.actions()
    assert [(one["who"], one["what"]) for one in actions] == [
        ("alice", "persona_version"),
        ("bob", "persona_status"),
        ("alice", "persona_version"),
    ]
    assert json.loads(actions[1]["before"])["status"] == "draft"
    assert json.loads(actions[1]["after"])["status"] == "approved"


def test_of_several_writers_at_once_one_makes_the_version(location: str) -> None:
    made, refused = list[int](), list[int]()
    start = threading.Barrier(6)

    def write(number: int) -> None:
        with GameDocumentStore(location) as store:
            start.wait()
            try:
                store.add("persona", CALM, f"writer {number}", revision=0)
                made.append(number)
            except DocumentChanged:
                refused.append(number)

    GameDocumentStore(location).close()
    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 5)
    found = read_documents_if_present(location)
    assert [one.who for one in found.versions] == [f"writer {made[0]}"]
    with VoteStore(location) as votes:
        assert len(votes.actions()) == 1


def test_the_database_itself_keeps_versions_apart(location: str) -> None:
    with GameDocumentStore(location) as store:
        store.add("persona", CALM, "alice", revision=0)
        with pytest.raises(StoreError, match=r"(?i)unique"):
            store.add("persona", CALM, "alice", revision=2)
        assert len(store.read_all().statuses) == 1


def test_documents_of_newer_code_are_refused(location: str) -> None:
    with GameDocumentStore(location) as store:
        store.database.write(lambda connection: connection.execute(sa.insert(document_schemas).values(schema_version=99)))
    with pytest.raises(StoreError, match="newer dtef-pipeline"):
        read_documents_if_present(location)


def test_the_hash_of_the_configuration_changes_with_what_is_in_play_and_not_with_a_draft(tmp_path: Path) -> None:
    """A draft that nobody plays changed it."""
    places = {"DTEF_RESPONSES": tmp_path / "responses.sqlite", "DTEF_PERSONAS": tmp_path}
    settings = Settings.read_environment({name: str(place) for name, place in places.items()})
    (tmp_path / "bold.yaml").write_text("{id: bold, version: 1, status: approved}", encoding="utf-8")
    found = [config_hash(settings)]
    bold = {"id": "bold", "version": 2, "status": "draft", "display_name": "Bold", "system_prompt": "Go."}
    with GameDocumentStore(settings.responses_url) as store:
        found.append(config_hash(settings))
        store.add("persona", bold, "alice", revision=0)
        found.append(config_hash(settings))
        assert len(set(found)) == 1
        store.say("persona", {**bold, "status": "approved"}, "bob", revision=2, before=bold)
        found.append(config_hash(settings))
        store.add("persona", {**bold, "version": 3}, "alice", revision=3)
        found.append(config_hash(settings))
        assert found[3] == found[4]
        store.say("persona", {**bold, "status": "retired"}, "bob", revision=5, before=bold)
        found.append(config_hash(settings))
        kuhn = {"id": "poker/kuhn", "version": 10_000, "status": "experimental"}
        store.add("scenario", kuhn, "alice", revision=0)  # of experimental ones alone the latest is played
        found.append(config_hash(settings))
    assert len(set(found)) == 4


def test_no_hash_of_the_configuration_is_made_while_the_store_is_away(tmp_path: Path) -> None:
    """It hashed the word `unreadable`: two answers of one configuration seemed to be of two."""
    (tmp_path / "responses.sqlite").write_bytes(b"no database" * 1000)
    settings = Settings.read_environment({"DTEF_RESPONSES": str(tmp_path / "responses.sqlite")})
    with pytest.raises(StoreError, match="not a database"):
        config_hash(settings)


def test_a_document_whose_commit_was_not_confirmed_is_stored_once(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work was done again, and took its own rows for those of somebody else."""
    with GameDocumentStore(location, lambda: NOW) as store:
        break_after_commit(store.database, monkeypatch)
        store.add("persona", CALM, "alice", revision=0)
        break_after_commit(store.database, monkeypatch)
        store.say("persona", {**CALM, "status": "approved"}, "bob", revision=2, before=CALM)
        assert store.read_all().revision("persona", "calm") == 3
        break_after_commit(store.database, monkeypatch)
        with pytest.raises(DocumentChanged):
            store.add("persona", {**CALM, "display_name": "Another"}, "alice", revision=0)
