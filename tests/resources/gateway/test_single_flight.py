"""What another run was asking is taken over as fast as it was answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from resources.gateway import single_flight
from resources.gateway.single_flight import SingleFlight
from resources.responses.claims import Claimed


class Answered:
    """Claims of a store that has the first so many answers; the others are asked elsewhere for good."""

    def __init__(self, answers: int) -> None:
        self.answers, self.looks = answers, 0

    def claim(self, keys: Sequence[str]) -> Claimed:
        self.looks += 1
        return Claimed(set(), {key for key in keys if int(key) < self.answers})

    def release(self, keys: Any) -> None: ...

    def beat(self) -> None: ...


async def looked(jobs: int, answers: int) -> tuple[Any, Answered]:
    """A queue whose requests were all another run's, and what it did within a moment."""
    queue = SimpleNamespace(
        spec=SimpleNamespace(max_concurrency=2),
        hungry=False,
        unclaimed=deque[Any](),
        claiming=0,
        replayed=0,
        ready=deque[Any](),
    )
    queue.elsewhere = deque(SimpleNamespace(key=str(number)) for number in range(jobs))
    claims, calm = Answered(answers), asyncio.Event()

    async def run(work: Callable[..., Any], *given: Any) -> Any:
        calm.clear()
        asyncio.get_running_loop().call_later(0.2, calm.set)
        return work(*given)

    flight = SingleFlight([queue], claims, SimpleNamespace(run=run), lambda: None)  # type: ignore[list-item, arg-type]
    task = asyncio.create_task(flight.run())
    async with asyncio.timeout(60):
        await calm.wait()
    task.cancel()
    return queue, claims


def test_answers_of_another_run_are_taken_over_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_flight, "_LOOK_EVERY_S", 3600.0)
    queue, _ = asyncio.run(looked(jobs=1000, answers=1000))
    assert (queue.replayed, len(queue.elsewhere), queue.claiming) == (1000, 0, 0)


def test_where_nothing_was_answered_one_look_is_enough_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_flight, "_LOOK_EVERY_S", 3600.0)
    queue, claims = asyncio.run(looked(jobs=1000, answers=0))
    assert (queue.replayed, len(queue.elsewhere), claims.looks) == (0, 1000, 1)
