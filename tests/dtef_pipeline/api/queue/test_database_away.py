"""A database that is away, or whose other writers take long, keeps nobody waiting for long, and those not at all who do not need it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import client_in
from tests.dtef_pipeline.api.served import operator_client, started
from tests.made.votes import written
from tests.postgres import Postgres

HANGING = 50
"""More than the server has threads."""


def ask(http: httpx2.Client, address: str, answers: list[int]) -> None:
    answer = http.get(f"{address}/api/evaluations/queue")
    assert answer.status_code != 503 or "retry-after" in answer.headers
    answers.append(answer.status_code)


def test_login_files_and_health_answer_while_others_wait_for_the_database(server: Postgres, tmp_path: Path) -> None:
    """Every request waited for a minute, in a thread of the 40 that there are, and so nobody could log in."""
    with operator_client() as http, started(tmp_path, server.new_database()) as api:
        for path in ("/api/evaluations/queue", "/login"):  # the first page loads what pages are made with
            assert http.get(f"{api.address}{path}").status_code == 200
        server.stop()
        try:
            answers: list[int] = []
            threads = [threading.Thread(target=ask, args=(http, api.address, answers)) for _ in range(HANGING)]
            for thread in threads:
                thread.start()
            for path in ("/login", "/static/api.css", "/healthz"):
                assert http.get(f"{api.address}{path}").status_code == 200
            assert not answers, "nobody was to be answered before those who need no database"
            told = http.get(f"{api.address}/api/health").json()
            assert told["database"]["answers"] is False
            assert len(answers) < HANGING, "health was to be told before all others"
            for thread in threads:
                thread.join()
            assert answers == [503] * HANGING
        finally:
            server.start()
        assert http.get(f"{api.address}/api/health").json()["database"]["answers"] is True


WAITING = 20
"""Votes that wait at once: more than the store has connections, fewer than the server has threads."""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_in(tmp_path) as made:
        yield made


def made_pairs(folder: Path, items: int) -> list[str]:
    with VoteStore(folder / "responses.sqlite") as votes:
        responses = written(items=items)
        votes.add_pairs(responses, make_new_pairs(responses), user="test")
        return [pair.pair_id for pair in votes.pairs()]


def test_who_reads_does_not_wait_for_those_who_wait_to_write(client: TestClient, tmp_path: Path) -> None:
    pair_ids, asked = made_pairs(tmp_path, WAITING), threading.Semaphore(0)

    def vote(pair_id: str) -> int:
        asked.release()
        ballot = {"pair_id": pair_id, "reviewer_id": "r", "choice": "A", "confidence": 3}
        return client.post("/api/feedback/votes", json=ballot).status_code

    with (
        closing(sqlite3.connect(tmp_path / "responses.sqlite", isolation_level=None)) as other,
        ThreadPoolExecutor(WAITING) as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        voted = [pool.submit(vote, pair_id) for pair_id in pair_ids]
        for _ in voted:
            asked.acquire()
        # All of them stand before the store.
        threading.Event().wait(0.5)
        status = client.get("/api/feedback/actions").status_code
        other.execute("ROLLBACK")
        assert status == 200
        assert {one.result() for one in voted} == {201}
