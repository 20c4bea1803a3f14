"""The API killed in the middle of votes: what was answered with 201 is stored, nothing is stored twice, and a repeat is told so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, settings_in
from tests.made.voted import responses

PROGRAM = """
import socket, sys
from pathlib import Path
import uvicorn
from dtef_pipeline.api.app import make_app
from tests.dtef_pipeline.api.made import services_in

listening = socket.create_server(("127.0.0.1", 0))
app = make_app(services_in(Path(sys.argv[1])))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])
"""
PATIENCE_AFTER_KILL_S = 60.0
VOTERS, VOTES_BEFORE_THE_KILL, VOTES_OF_ONE_ID = 4, 40, 50


class Running(NamedTuple):
    """The API in a process of its own."""

    address: str
    process: subprocess.Popen[str]


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Running(f"http://127.0.0.1:{process.stdout.readline().strip()}", process)
        finally:
            process.kill()


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
        with httpx2.Client(
            headers={"Authorization": f"Bearer {ROLE_TOKENS['operator']}"}, timeout=PATIENCE_AFTER_KILL_S
        ) as client:
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

    with running(tmp_path) as api:
        threads = [threading.Thread(target=vote, args=(api.address, voter)) for voter in range(VOTERS)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + PATIENCE_AFTER_KILL_S
        while len(taken) < VOTES_BEFORE_THE_KILL and time.monotonic() < end:
            time.sleep(0.005)
        os.kill(api.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(PATIENCE_AFTER_KILL_S)
    assert others == []
    assert len(taken) >= VOTES_BEFORE_THE_KILL
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
