"""What operators and administrators do with votes over HTTP: voids, the log of actions, and scores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.votes import Ballot
from resources.votes.vote_store import VoteStore
from resources.votes.vote_tables import add_rows
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, votes_of
from tests.made.votes import responses

ACTIONS, SCORES = (f"/api/feedback/{name}" for name in ("actions", "scores"))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """An administrator's, over a store with 6 pairs and 12 votes."""
    with client_in(tmp_path) as found:
        store = votes_of(found)
        rows = responses(4)
        store.add_pairs(rows, make_new_pairs(rows), user="me")
        add_votes(store, 12)
        store.record_consent("r1", consent=True)
        yield found


def add_votes(store: VoteStore, count: int) -> None:
    """Each reviewer votes on all pairs."""
    pairs = [pair.pair_id for pair in store.pairs()]
    ballots = [Ballot(pairs[place % len(pairs)], f"r{place // len(pairs)}", "A", 3, "because") for place in range(count)]
    records = [store.vote_record(one, store.clock()) for one in ballots]
    store.database.write(lambda connection: add_rows(connection, store.database, "vote", records))


def test_a_vote_is_voided_once_for_a_reason(client: TestClient) -> None:
    vote_id = votes_of(client).votes()[0][0]
    path = f"/api/feedback/votes/{vote_id}/void"
    for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": "x", "who": "y"}):
        assert client.post(path, json=body).status_code == 422
    answers = [client.post(path, json={"reason": "tried the keys"}) for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 409]
    assert votes_of(client).votes()[0][2]
    for unknown in ("0" * 32, "x", "%00", "a%2Fb"):
        assert client.post(f"/api/feedback/votes/{unknown}/void", json={"reason": "x"}).status_code == 404


def test_the_log_of_actions_is_read_page_by_page(client: TestClient) -> None:
    client.post(f"/api/feedback/votes/{votes_of(client).votes()[0][0]}/void", json={"reason": "x"})
    found, after = [], 0
    while after is not None:
        page = client.get(ACTIONS, params={"after": after, "limit": 1}).json()
        found += page["actions"]
        after = page["next"]
    assert [(one["user"], one["action"]) for one in found] == [
        ("me", "pairs"),
        ("r1", "reviewer"),
        ("admin", "void"),
    ]
    assert found == client.get(ACTIONS).json()["actions"]
    assert found[2]["after"]["reason"] == "x"
    for said in (found[2]["before"]["voted_at"], found[2]["after"]["voided_at"]):
        assert said == datetime.fromisoformat(said).isoformat()
    assert client.get(ACTIONS, params={"limit": 0}).status_code == 422


def test_scores_are_a_list_that_is_empty_before_there_are_any(client: TestClient, tmp_path: Path) -> None:
    now = client.get(SCORES).json()["votes_version"]
    assert now.startswith(f"{len(votes_of(client).votes())}-")
    before = client.get(SCORES).json()
    assert before["scores"] == []
    assert before["note"].startswith("no scores ")
    assert "No scores " in client.get("/board").text
    (tmp_path / "without").mkdir()
    with client_in(tmp_path / "without") as other:
        assert other.get(SCORES).json()["note"] is None
        assert "There are no votes yet." in other.get("/board").text
    row = {field.name: None for field in PREFERENCE_SCORES} | {
        "family": "qa", "partition": "all", "reviewer_kind": "person", "player": "m", "beta": 0.5, "reviewers": 3,
        "reason": "fewer than 5 reviewers", "note": "fewer than 5 prompts", "votes_version": now,
    }  # fmt: skip
    Warehouse(client.app.state.services.settings.warehouse).write(  # type: ignore[attr-defined]
        "preference_scores", pa.Table.from_pylist([row], schema=PREFERENCE_SCORES)
    )
    found = client.get(SCORES, params={"family": "qa"})
    (told,) = found.json()["scores"]
    assert (told["beta"], told["low"], told["reason"]) == (0.5, None, "fewer than 5 reviewers")
    assert told["note"] == "fewer than 5 prompts"
    assert found.json()["note"] is None
    for family in ("games", "elsewhere"):
        assert client.get(SCORES, params={"family": family}).json() == {"scores": [], "votes_version": now, "note": None}
    refused = client.get(SCORES, params={"family": "chess"})
    assert (refused.status_code, "games, elsewhere" in refused.json()["detail"]) == (422, True)
    assert client.get(SCORES, params={"family": "qa"}, headers={"If-None-Match": found.headers["etag"]}).status_code == 304
    # Scores of other votes than there are looked like those of now.
    vote_id = votes_of(client).votes()[0][0]
    assert client.post(f"/api/feedback/votes/{vote_id}/void", json={"reason": "by mistake"}).status_code == 201
    after = client.get(SCORES, params={"family": "qa"}).json()
    assert (after["votes_version"] != now, after["scores"]) == (True, [told])
    assert "votes were added or voided" in after["note"]
    assert "Votes were added or voided" in client.get("/board").text


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ACTIONS), ("POST", f"/api/feedback/votes/{'0' * 32}/void"), ("GET", SCORES)],
)
def test_who_may_do_what(client: TestClient, method: str, path: str) -> None:
    for role in ("reviewer", "operator"):
        answer = client.request(method, path, headers={"Authorization": f"Bearer {ROLE_TOKENS[role]}"}, json={"reason": "x"})
        assert answer.status_code == (200 if (role, path) == ("operator", SCORES) else 403)
