"""The API killed in the middle of votes: what was answered with 201 is stored, nothing is stored twice, and a repeat is told so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.dtef_pipeline.api.served import AS_ADMIN, PATIENCE_OF_KILLS_S, started, until
from tests.made.votes import responses

VOTERS, VOTES_BEFORE_THE_KILL, VOTES_OF_ONE_ID = 4, 40, 50


def ballots(pair_ids: list[str], voter: int) -> Iterator[dict[str, object]]:
    """Those of one thread: several ids, so that no rate limit is met."""
    for place in range(10_000):
        reviewer, pair = divmod(place, min(VOTES_OF_ONE_ID, len(pair_ids)))
        yield {"pair_id": pair_ids[pair], "reviewer_id": f"r{voter}-{reviewer}", "choice": "A", "confidence": 3}


def test_every_vote_that_was_taken_survives_a_kill_and_none_is_doubled(tmp_path: Path) -> None:
    with VoteStore(settings_in(tmp_path).responses_url) as store:
        rows = responses(6, items=4)
        store.add_pairs(rows, make_new_pairs(rows))
        pair_ids = [pair.pair_id for pair in store.pairs()]
    taken: list[tuple[str, dict[str, object]]] = []
    open_at_the_end: list[dict[str, object]] = []
    others: list[int] = []

    def vote(address: str, voter: int) -> None:
        with httpx2.Client(headers=AS_ADMIN, timeout=PATIENCE_OF_KILLS_S) as client:
            for body in ballots(pair_ids, voter):
                try:
                    answer = client.post(f"{address}/api/feedback/votes", json=body)
                except httpx2.TransportError:
                    open_at_the_end.append(body)
                    return
                if answer.status_code != 201:
                    others.append(answer.status_code)
                    return
                taken.append((answer.json()["vote_id"], body))

    with started(tmp_path, settings_in(tmp_path).responses_url) as api:
        threads = [threading.Thread(target=vote, args=(api.address, voter)) for voter in range(VOTERS)]
        for thread in threads:
            thread.start()
        until(lambda: len(taken) >= VOTES_BEFORE_THE_KILL or others, "votes")
        api.end(signal.SIGKILL)
        for thread in threads:
            thread.join(PATIENCE_OF_KILLS_S)
    assert others == []
    assert len(open_at_the_end) == VOTERS
    with client_in(tmp_path, "operator") as client:
        again = [client.post("/api/feedback/votes", json=body).status_code for body in open_at_the_end]
        repeated = client.post("/api/feedback/votes", json=taken[0][1])
    assert set(again) <= {201, 409}
    assert (repeated.status_code, "first vote stays" in repeated.text) == (409, True)
    with VoteStore(settings_in(tmp_path).responses_url) as store:
        stored = {vote_id: vote for vote_id, vote, _ in store.votes()}
    assert {vote_id for vote_id, _ in taken} <= stored.keys()
    wanted = [(body["pair_id"], body["reviewer_id"]) for body in [*(body for _, body in taken), *open_at_the_end]]
    assert sorted((vote.pair_id, vote.reviewer_id) for vote in stored.values()) == sorted(wanted)  # type: ignore[type-var]
