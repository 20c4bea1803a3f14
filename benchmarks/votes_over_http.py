"""How much of a processor votes over HTTP need, how long 100,000 votes take out of a store and into another, and that nothing served tells
who wrote it.

    python -m benchmarks.votes_over_http [--votes 100000]

Asked for: 1,000 votes a minute on two cores beside everything else, and 100,000 votes out or in within 10 s.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fastapi.testclient import TestClient

from dtef_pipeline.preference.ballots import Ballot
from dtef_pipeline.preference.pairing import new_pairs
from resources.exported_votes import export_votes, import_votes
from resources.vote_tables import TABLE_OF_KIND, add_rows
from resources.votes import VoteStore
from tests.dtef_pipeline.api.made import client_in
from tests.dtef_pipeline.api.test_blinded_bytes import check_served
from tests.made.voted import VOTES, responses

PLAYERS, ITEMS, MOST_PAIRS = 60, 6, 10_000
ASKED_A_MINUTE = 1_000
LARGEST_PIECE = 900_000


def filled(store: VoteStore, votes: int) -> None:
    """10,000 pairs, and votes of people who each vote on all of them."""
    rows = responses(PLAYERS, ITEMS)
    store.add_pairs(rows, new_pairs(rows, most=MOST_PAIRS))
    ids = [pair.pair_id for pair in store.pairs()]
    ballots = [Ballot(ids[at % len(ids)], f"old{at // len(ids)}", "A", 3, "It is better.") for at in range(votes)]
    records = [store.vote_record(one, store.clock()) for one in ballots]
    store.database.write(lambda connection: add_rows(connection, store.database, "vote", records))


def seconds(name: str, do: Callable[[], object]) -> None:
    """Say how long it takes, in real time and of a processor."""
    began, used = time.perf_counter(), time.process_time()
    do()
    print(f"{name:<60} {time.perf_counter() - began:6.1f} s, of a processor {time.process_time() - used:6.1f} s")


def a_minute(client: TestClient) -> None:
    """What a minute brings: a pair and a vote, again and again."""
    for place in range(ASKED_A_MINUTE):
        reviewer = f"r{place % 40}"
        pair = client.get("/api/feedback/next", params={"reviewer_id": reviewer}).json()
        body = {"pair_id": pair["pair_id"], "reviewer_id": reviewer, "choice": "A", "confidence": 3}
        assert client.post("/api/feedback/votes", json=body).status_code == 201


def in_pieces(lines: bytes) -> Iterator[bytes]:
    """As bodies of requests: what votes are about comes before them."""
    in_order = sorted(lines.splitlines(keepends=True), key=_place_of_kind)
    piece = bytearray()
    for line in in_order:
        if len(piece) + len(line) > LARGEST_PIECE:
            yield bytes(piece)
            piece.clear()
        piece += line
    yield bytes(piece)


def _place_of_kind(line: bytes) -> int:
    return list(TABLE_OF_KIND).index(json.loads(line)["kind"])


def bulk(client: TestClient, folder: Path) -> None:
    """Out and in by the functions behind the commands, then over HTTP; the bytes have to be the same."""
    store: VoteStore = client.app.state.services.votes  # type: ignore[attr-defined]
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    seconds("export", lambda: export_votes(store, first))
    with VoteStore(folder / "other.sqlite") as other:
        seconds("import", lambda: import_votes(other, first))
        export_votes(other, second)
    assert first.read_bytes() == second.read_bytes()
    sent: list[bytes] = []
    seconds("export over HTTP", lambda: sent.append(client.get("/api/feedback/export").content))
    assert sent[0] == first.read_bytes()
    (folder / "far").mkdir()
    with client_in(folder / "far") as far:
        pieces = list(in_pieces(sent[0]))
        seconds(f"import over HTTP in {len(pieces)} bodies", lambda: [take(far, piece) for piece in pieces])
        assert far.get("/api/feedback/export").content == sent[0]
    print(f"{len(sent[0]):,} bytes, the same each time")


def take(client: TestClient, piece: bytes) -> None:
    answer = client.post("/api/feedback/import", content=piece)
    assert answer.status_code == 201, answer.text


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--votes", type=int, default=100_000)
    votes = asked.parse_args().votes
    with tempfile.TemporaryDirectory() as name, client_in(Path(name)) as client:
        filled(client.app.state.services.votes, votes)  # type: ignore[attr-defined]
        bulk(client, Path(name))
        seconds("the first pair", lambda: client.get("/api/feedback/next", params={"reviewer_id": "first"}))
        seconds(f"{ASKED_A_MINUTE:,} pairs and votes, with the client", lambda: a_minute(client))
    if VOTES.is_dir():
        with tempfile.TemporaryDirectory() as name:
            print(f"{check_served(Path(name), every=1):,} real pairs served; nothing tells who wrote them")


if __name__ == "__main__":
    main()
