"""Votes over HTTP: read strictly, taken once, under nobody's id but one's own, and no faster than a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dtef_pipeline.api.review.feedback_routes import VOTES_A_MINUTE
from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore, add_judge
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, votes_of
from tests.made.votes import responses, vectors

VOTES_PATH, NEXT = "/api/feedback/votes", "/api/feedback/next"
AS_REVIEWER = {"Authorization": f"Bearer {ROLE_TOKENS['reviewer']}"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """With the token of an operator, over a store with 6 pairs."""
    with client_in(tmp_path, "operator") as found:
        fill(votes_of(found))
        yield found


def fill(store: VoteStore, players: int = 4, items: int = 1) -> None:
    rows = responses(players, items)
    store.add_pairs(rows, make_new_pairs(rows))


def ballot(client: TestClient, **values: Any) -> dict[str, Any]:
    pair_id = votes_of(client).pairs()[0].pair_id
    return {"pair_id": pair_id, "reviewer_id": "r1", "choice": "A", "confidence": 3, **values}


@pytest.mark.parametrize(("given", "expected"), vectors("post_vote"))
def test_vectors_of_votes(client: TestClient, given: dict[str, Any], expected: int | list[int]) -> None:
    bodies = [one | {"pair_id": "P1"} for one in given.get("sequence", [given.get("body")])]
    known = votes_of(client).pairs()[0].pair_id
    found = [client.post(VOTES_PATH, json={"reviewer_id": "r1", **body, "pair_id": known}).status_code for body in bodies]
    assert found == (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize(
    ("values", "status", "said"),
    [
        ({"reviewer_id": ["r1"]}, 422, "reviewer_id"),
        ({"reviewer_id": "pairs(openai/gpt-4)#1a2b3c4d"}, 422, "belongs to a judge"),
        ({"pair_id": "P1"}, 404, "there is no pair 'P1'"),
        ({"choice": "C", "confidence": 9, "model": "gpt"}, 422, "model: "),
    ],
)
def test_what_is_wrong_is_stated(client: TestClient, values: dict[str, Any], status: int, said: str) -> None:
    answer = client.post(VOTES_PATH, json=ballot(client, **values))
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]
    assert "`dtef" not in answer.text, "a reviewer has no shell"
    if status == 422:
        assert [one["path"] for one in answer.json()["errors"]] == list(values)
    assert votes_of(client).votes() == []


def test_a_vote_is_stored_once_and_the_first_stays(client: TestClient) -> None:
    first = client.post(VOTES_PATH, json=ballot(client, justification="well said"))
    assert first.status_code == 201
    again = client.post(VOTES_PATH, json=ballot(client, choice="B"))
    assert (again.status_code, "the first vote stays" in again.json()["detail"]) == (409, True)
    ((vote_id, vote, _),) = votes_of(client).votes()
    assert (first.json(), vote.choice, vote.justification) == ({"vote_id": vote_id}, "A", "well said")


def test_a_reviewer_gets_each_pair_once_and_then_none(client: TestClient) -> None:
    seen = []
    while (answer := client.get(NEXT, params={"reviewer_id": "r1"})).status_code == 200:
        assert list(answer.json()) == ["pair_id", "prompt", "run_a", "run_b"]
        assert answer.headers["cache-control"] == "no-store"
        seen.append(answer.json()["pair_id"])
        assert client.post(VOTES_PATH, json=ballot(client, pair_id=seen[-1])).status_code == 201
    assert (answer.status_code, answer.content) == (204, b"")
    assert sorted(seen) == [pair.pair_id for pair in votes_of(client).pairs()]
    assert client.get(NEXT, params={"reviewer_id": "r2", "family": "games"}).status_code == 204


def test_a_reviewer_asks_and_votes_under_no_id_but_the_own(client: TestClient) -> None:
    for name, status in (("reviewer", 200), ("somebody", 403)):
        assert client.get(NEXT, params={"reviewer_id": name}, headers=AS_REVIEWER).status_code == status
    for name, status in (("reviewer", 201), ("somebody", 403)):
        answer = client.post(VOTES_PATH, json=ballot(client, reviewer_id=name), headers=AS_REVIEWER)
        assert answer.status_code == status
        assert "player" not in answer.text
    assert client.post("/api/feedback/pairs", json={"family": "qa"}, headers=AS_REVIEWER).status_code == 403


def test_a_judge_is_served_nothing(client: TestClient) -> None:
    add_judge(votes_of(client), "the judge")
    assert client.get(NEXT, params={"reviewer_id": "the judge"}).status_code == 422
    assert client.get(NEXT, params={"reviewer_id": "a\nb"}).status_code == 422
    assert client.get(NEXT).status_code == 422


def test_more_votes_than_a_person_reads_have_to_wait(client: TestClient) -> None:
    now = [100.0]
    client.get(NEXT, params={"reviewer_id": "r1"})
    client.app.state.feedback.rate.clock = lambda: now[0]  # type: ignore[attr-defined]
    body = ballot(client)
    found = [client.post(VOTES_PATH, json=body).status_code for _ in range(VOTES_A_MINUTE)]
    assert found == [201] + [409] * (VOTES_A_MINUTE - 1)
    now[0] = 119.5
    answer = client.post(VOTES_PATH, json=body)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "41")
    assert client.post(VOTES_PATH, json=ballot(client, reviewer_id="r2")).status_code == 201
    now[0] = 160.0
    assert client.post(VOTES_PATH, json=body).status_code == 409
