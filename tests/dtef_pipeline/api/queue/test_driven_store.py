"""The API while somebody else writes to its store for long."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import client_in
from tests.made.stored_votes import written

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
