"""No byte of what a reviewer is served tells who wrote it: status line, headers and body, over every 25th of 2,139 pairs of real responses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from itertools import combinations
from pathlib import Path

from starlette.types import ASGIApp, Message

from dtef_pipeline.api.app import make_app
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.preference.paired_source import read_pairs_csv
from dtef_pipeline.preference.votes import Ballot, vote_pair
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import ROLE_TOKENS, services_in
from tests.made.shared_cases import shared
from tests.made.voted import VOTES, real_responses

PAIRS = 2_139
REQUEST_KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
METADATA = (
    "token",
    "cost",
    "latency",
    "usd",
    "finish_reason",
    "request_key",
    "snapshot",
    "player",
    "adapter",
    "persona",
    "config",
)


def test_nothing_served_of_real_pairs_tells_who_wrote_it(tmp_path: Path) -> None:
    shared("votes")
    check_served(tmp_path, every=25)


def check_served(folder: Path, every: int) -> int:
    """Serve every so many of the pairs over stores in the folder; returns how many. Fails for anything that tells who wrote a text."""
    services = services_in(folder)
    rows = [one.__class__(**{**as_fields(one), "request_keys": (REQUEST_KEY,)}) for one in real_responses()]
    by_id = {one.response_id: one for one in rows}
    files = (VOTES / "llmfao" / name for name in ("votes.csv", "responses.jsonl", "prompts.jsonl"))
    voted = {one.pair.pair_id: one.pair for one in read_pairs_csv(*files)}
    every_other = (vote_pair(*two) for two in combinations(rows, 2) if two[0].item_id == two[1].item_id)
    pairs = list((voted | {one.pair_id: one for one in every_other}).values())[:PAIRS]
    assert len(voted) == 844
    made = [one for one in pairs[::every] if len({normalize_text(by_id[side].text) for side in (one.left, one.right)}) == 2]
    services.votes.add_pairs(by_id.values(), made)
    app = make_app(services)
    served = asyncio.run(all_bytes(app, services.votes, [f"r{place}" for place in range(len(made))]))
    services.close()
    bodies = [json.loads(body) for _, body in served]
    assert {tuple(body) for body in bodies} == {("pair_id", "prompt", "run_a", "run_b")}
    assert len({body["pair_id"] for body in bodies}) == len(made)
    leak = naive_leak(name for row in rows for name in row.names)
    secret = re.compile("|".join((REQUEST_KEY, services.votes.salt, *by_id)))
    for text in {body[name] for body in bodies for name in ("prompt", "run_a", "run_b")}:
        assert leak.search(text.replace("[model]", "")) is None
    for (head, body), read in zip(served, bodies, strict=True):
        # Nothing stands in the body but the four fields.
        assert body == json.dumps(read, ensure_ascii=False, separators=(",", ":")).encode()
        assert leak.search(head) is None
        assert secret.search(head + body.decode()) is None
        assert [word for word in METADATA if word in head.lower()] == []
    return len(made)


def as_fields(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__slots__}  # type: ignore[attr-defined]


async def all_bytes(app: ASGIApp, votes: VoteStore, reviewers: Iterable[str]) -> list[tuple[str, bytes]]:
    """(status line and headers, body) of the next pair of each reviewer, who votes on it before the next one comes."""
    every = []
    for one in reviewers:
        head, body = await one_answer(app, f"reviewer_id={one}".encode())
        votes.take(Ballot(json.loads(body)["pair_id"], one, "A", 3))
        every.append((head, body))
    return every


async def one_answer(app: ASGIApp, query: bytes) -> tuple[str, bytes]:
    head, body = "", b""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal head, body
        if message["type"] == "http.response.start":
            lines = [f"{message['status']} {HTTPStatus(message['status']).phrase}"]
            head = "\n".join([*lines, *(f"{name.decode()}: {value.decode()}" for name, value in message["headers"])])
        else:
            body += message.get("body", b"")

    await app({
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http", "root_path": "",
        "path": "/api/feedback/next", "raw_path": b"/api/feedback/next", "query_string": query, "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1), "headers": [(b"authorization", f"Bearer {ROLE_TOKENS['operator']}".encode())],
    }, receive, send)  # fmt: skip
    return head, body


def naive_leak(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the names as a whole word, in any case, with a hyphen, an underscore and white space for each other."""
    spelled = {r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name))) for name in names if re.search("[A-Za-z]", name)}
    longest_first = sorted(spelled, key=lambda one: (-len(one), one))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(longest_first)})(?![A-Za-z0-9])", re.IGNORECASE)
