"""Two runs over the same work at the same time: each answer is bought once, both have all of them, and neither waits for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from multiprocessing.queues import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from resources.gateway import dispatch
from resources.gateway.dispatch import SingleFlight
from resources.gateway.queues import Job, ModelQueue
from resources.responses.claims import ClaimOutcome, Claims
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM
from tests.made.responses import stored
from tests.resources import forked
from tests.resources.gateway.gateway_setup import gateway, model, requests
from tests.waiting import wait_until

COUNT = 120


def _run(location: str, base_url: str, counted: Queue[tuple[int, int, int]]) -> None:
    spec = model(None, api_base=base_url, max_concurrency=8)
    with ResponseStore(location) as store:
        answers = gateway(store).answer(requests(spec, COUNT))
    counted.put((len(answers.failures), answers.n_sent, answers.replayed))


def start_two(location: str, server: FakeLLM) -> tuple[list[Any], Queue[tuple[int, int, int]]]:
    """Two runs in processes of their own, and what each counts at its end: (failed, asked, replayed)."""
    context = forked.context()
    counted: Queue[tuple[int, int, int]] = context.Queue()
    runs = [context.Process(target=_run, args=(location, server.base_url, counted)) for _ in range(2)]
    for run in runs:
        run.start()
    return runs, counted


class TestTwoProcesses:
    def test_they_split_the_work_and_both_have_all_of_it(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            runs, counted = start_two(location, server)
            found = [counted.get(timeout=120) for _ in runs]
            for run in runs:
                run.join(timeout=120)
            assert [run.exitcode for run in runs] == [0, 0]
            assert set(server.answers.values()) == {1}
            assert server.answered == COUNT
        assert [failed for failed, _, _ in found] == [0, 0]
        assert sum(asked for _, asked, _ in found) == COUNT
        assert [asked + replayed for _, asked, replayed in found] == [COUNT, COUNT]
        with ResponseStore(location) as store:
            assert stored(store) == COUNT

    def test_what_a_killed_run_had_claimed_is_taken_over(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            (killed, other), counted = start_two(location, server)
            wait_until(lambda: server.answered >= 60)
            killed.kill()
            killed.join()
            failed, asked, replayed = counted.get(timeout=120)
            other.join(timeout=120)
            assert (other.exitcode, failed, asked + replayed) == (0, 0, COUNT)
            assert server.answered <= COUNT + 8
        with ResponseStore(location) as store:
            assert stored(store) == COUNT


class TestOneProcess:
    """Another owner of claims, in the same process."""

    def test_what_another_run_holds_is_asked_once_it_lets_go(self, store: ResponseStore) -> None:
        with FakeLLM() as server, Claims(store) as other:
            wanted = requests(model(server, max_concurrency=2), 12)
            held = [request.key for request in wanted[:3]]
            assert other.claim(held).mine == set(held)

            def release_when_the_rest_is_done(_: object) -> None:
                if server.answered == 9:
                    Claims.release(other, held)

            answers = gateway(store).answer(wanted, on_progress=release_when_the_rest_is_done)
            users = [call.user for call in server.calls]
        assert (answers.n_sent, answers.replayed, answers.failures) == (12, 0, {})
        assert set(users[-3:]) == {"question 0", "question 1", "question 2"}
        store.close()


class Answered:
    """Claims of a store that has the first so many answers; the others are asked elsewhere for good."""

    def __init__(self, answers: int) -> None:
        self.answers, self.looks = answers, 0

    def claim(self, keys: Sequence[str]) -> ClaimOutcome:
        self.looks += 1
        return ClaimOutcome(set(), {key for key in keys if int(key) < self.answers})

    def release(self, keys: Any) -> None: ...

    def beat(self) -> None: ...


async def looked(jobs: int, answers: int) -> tuple[ModelQueue, Answered]:
    """A queue whose requests were all another run's, and what it did within a moment."""
    queue = ModelQueue(SimpleNamespace(spec=model(None, max_concurrency=2)))  # type: ignore[arg-type]
    queue.elsewhere.extend(Job(str(number), None) for number in range(jobs))  # type: ignore[arg-type]
    claims, calm = Answered(answers), asyncio.Event()

    async def run(work: Callable[..., Any], *given: Any) -> Any:
        calm.clear()
        asyncio.get_running_loop().call_later(0.2, calm.set)
        return work(*given)

    flight = SingleFlight([queue], claims, SimpleNamespace(run=run), lambda: None)  # type: ignore[arg-type]
    task = asyncio.create_task(flight.run())
    async with asyncio.timeout(60):
        await calm.wait()
    task.cancel()
    return queue, claims


def test_answers_of_another_run_are_taken_over_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LOOK_EVERY_S", 3600.0)
    queue, _ = asyncio.run(looked(jobs=1000, answers=1000))
    assert (queue.replayed, len(queue.elsewhere), queue.claiming) == (1000, 0, 0)


def test_where_nothing_was_answered_one_look_is_enough_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_LOOK_EVERY_S", 3600.0)
    queue, claims = asyncio.run(looked(jobs=1000, answers=0))
    assert (queue.replayed, len(queue.elsewhere), claims.looks) == (0, 1000, 1)
