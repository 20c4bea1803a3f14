"""The HTTP API under load: subscribers of one evaluation's events, and reviewers who get pairs and vote, all at a steady rate.

Starts `dtef api` on a store of its own, and prints the share of a core that the process took, and how long votes and events took. An event
takes from when it is stored to when a subscriber has it. Run: `python -m benchmarks.api [SUBSCRIBERS] [VOTES_PER_MINUTE] [SECONDS]`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx2
import numpy as np

from dtef_pipeline.preference.pairing import new_pairs
from resources.evaluations import AskedRun, EvaluationStore
from resources.votes import VoteStore
from tests.dtef_pipeline.api.started import AS_ADMIN, started
from tests.made.stored_votes import written

EVENTS_PER_S = 5.0
REVIEWERS = 40
"""Each votes less often than the limit of the rate allows."""
TICKS_PER_S = 100


def cpu_seconds(pid: int) -> float:
    """Of a process, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


async def subscribe(client: httpx2.AsyncClient, url: str, delays: list[float], is_open: asyncio.Event) -> None:
    async with client.stream("GET", url, timeout=None) as answer:
        assert answer.status_code == 200
        is_open.set()
        async for line in answer.aiter_lines():
            if line.startswith("data: ") and (at := json.loads(line[6:]).get("at")):
                delays.append(time.time() - at)


async def write_events(store: EvaluationStore, queue_id: str, end: float) -> int:
    number = 0
    while time.monotonic() < end:
        await asyncio.to_thread(lambda: store.append(queue_id, "item", {"at": time.time()}, f"{time.time_ns()}"))
        number += 1
        await asyncio.sleep(1 / EVENTS_PER_S)
    await asyncio.to_thread(store.append, queue_id, "completed", {}, "end")
    return number


async def vote(
    client: httpx2.AsyncClient, address: str, reviewer: str, taken: list[tuple[float, float]], faults: list[int]
) -> None:
    began = time.perf_counter()
    served = await client.get(f"{address}/api/feedback/next", params={"reviewer_id": reviewer})
    middle = time.perf_counter()
    if served.status_code != 200:
        faults.append(served.status_code)
        return
    ballot = {"pair_id": served.json()["pair_id"], "reviewer_id": reviewer, "choice": "A", "confidence": 3}
    answer = await client.post(f"{address}/api/feedback/votes", json=ballot)
    if answer.status_code != 201:
        faults.append(answer.status_code)
    taken.append((middle - began, time.perf_counter() - middle))


async def vote_steadily(
    client: httpx2.AsyncClient, address: str, per_minute: int, end: float
) -> tuple[list[tuple[float, float]], list[int]]:
    taken, faults, under_way, number = list[tuple[float, float]](), list[int](), set[asyncio.Task[None]](), 0
    following = time.monotonic()
    while following < end:
        await asyncio.sleep(max(0.0, following - time.monotonic()))
        task = asyncio.create_task(vote(client, address, f"r{number % REVIEWERS}", taken, faults))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        number += 1
        following += 60 / per_minute
    await asyncio.gather(*under_way)
    return taken, faults


def row(name: str, seconds: Sequence[float]) -> str:
    values = np.asarray(seconds) * 1000
    return (
        f"{name:<16} {len(values):>8,} {np.quantile(values, 0.5):>9.0f} {np.quantile(values, 0.95):>9.0f} {values.max():>9.0f}"
    )


async def load(address: str, pid: int, url: str, queue_id: str, subscribers: int, per_minute: int, seconds: float) -> None:
    delays, opened = list[float](), [asyncio.Event() for _ in range(subscribers)]
    limits = httpx2.Limits(max_connections=subscribers + 100)
    async with httpx2.AsyncClient(headers=AS_ADMIN, limits=limits, timeout=60) as client:
        stream = f"{address}/api/evaluations/queue/{queue_id}/events"
        streams = [asyncio.create_task(subscribe(client, stream, delays, one)) for one in opened]
        await asyncio.gather(*(one.wait() for one in opened))
        # The first pair takes long: a reviewer whose turn comes again meanwhile would vote twice on one.
        await client.get(f"{address}/api/feedback/next", params={"reviewer_id": "nobody"})
        with EvaluationStore(url) as store:
            before, began = cpu_seconds(pid), time.monotonic()
            end = began + seconds
            written_events, (taken, faults) = await asyncio.gather(
                write_events(store, queue_id, end), vote_steadily(client, address, per_minute, end)
            )
            share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        await asyncio.gather(*streams)
    print(f"{subscribers} subscribers, {per_minute:,} votes a minute, {written_events} events, {seconds:g} s")
    refused = ", ".join(f"{number} x {status}" for status, number in sorted(Counter(faults).items())) or "none"
    print(
        f"share of one core: {share:.0%}; answers that were no success: {refused}; events not delivered: "
        f"{written_events * subscribers - len(delays)}"
    )
    print(f"{'milliseconds':<16} {'n':>8} {'p50':>9} {'p95':>9} {'max':>9}")
    print(row("next pair", [one for one, _ in taken]))
    print(row("vote", [one for _, one in taken]))
    print(row("event", delays))


def main() -> None:
    subscribers, per_minute, seconds = ([int(word) for word in sys.argv[1:]] + [100, 1000, 60][len(sys.argv) - 1 :])[:3]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/responses.sqlite"
        with VoteStore(url) as votes, EvaluationStore(url) as store:
            responses = written(("alpha", "beta", "gamma"), items=200)
            votes.add_pairs(responses, new_pairs(responses), who="benchmark")
            made, _ = store.submit("games", {}, {"snapshot": "base"}, [AskedRun("poker/kuhn", {})], "benchmark")
        with started(folder, url) as api:
            asyncio.run(load(api.address, api.process.pid, url, made.queue_id, subscribers, per_minute, seconds))
            api.end(signal.SIGTERM)


if __name__ == "__main__":
    main()
