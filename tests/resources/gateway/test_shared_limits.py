"""Runs in three processes share the limit of a provider: a real server counts the calls that it has at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from resources.gateway.gateway import SharedLimits
from resources.gateway.queues import ProviderSlots
from resources.gateway.retries import Backoff
from resources.responses.provider_shares import Share
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM
from tests.made.responses import stored
from tests.resources import forked
from tests.resources.gateway.gateway_setup import gateway, model, requests

PROCESSES = 3


def _run(location: str, base_url: str, name: str, count: int, most: dict[str, int], told: Connection) -> None:
    spec = model(None, api_base=base_url, max_concurrency=24)
    with ResponseStore(location) as store:
        answers = gateway(store, provider_limits=most).answer(requests(spec, count, snapshot=name))
    told.send(len(answers.failures))


@contextmanager
def runs(location: str, server: FakeLLM, count: int, most: dict[str, int]) -> Iterator[list[Connection]]:
    """Each asks other requests. What they send is how many failed."""
    context = forked.context()
    ResponseStore(location).close()
    started, told = [], []
    for number in range(PROCESSES):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(location, server.base_url, f"s{number}", count, most, theirs))
        process.start()
        theirs.close()
        started.append(process)
        told.append(ours)
    try:
        yield told
    finally:
        for process, connection in zip(started, told, strict=True):
            process.join(60)
            process.kill()
            connection.close()


def of(server: FakeLLM, calls: int) -> dict[str, int]:
    return {f"openai/{server.base_url.split('/')[2]}": calls}


def test_the_calls_of_all_processes_are_never_more_than_the_limit_that_is_given(location: str) -> None:
    with FakeLLM(latency=0.05) as server, runs(location, server, 40, of(server, 5)) as told:
        assert [one.recv() for one in told] == [0] * PROCESSES
        assert server.peak == 5
        assert server.answered == PROCESSES * 40
    with ResponseStore(location) as store:
        assert stored(store) == PROCESSES * 40


def test_what_a_killed_process_held_is_for_the_others(location: str) -> None:
    with FakeLLM(latency=0.02) as server:
        most = of(server, 4)
        context = forked.context()
        ours, theirs = context.Pipe(duplex=False)
        killed = context.Process(target=_run, args=(location, server.base_url, "killed", 5_000, most, theirs))
        killed.start()
        deadline = time.monotonic() + 60
        while server.answered < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.kill()
        killed.join()
        ours.close()
        theirs.close()
        with ResponseStore(location) as store:
            spec = model(server, max_concurrency=24)
            assert gateway(store, provider_limits=most).answer(requests(spec, 30)).failures == {}
        assert server.peak <= 4


def test_a_pause_of_another_run_is_not_reported_of_as_ones_own() -> None:
    """It grew by the time that each telling took, once a second, and with each run that told of it."""
    limits = SharedLimits([], None, None, lambda: None, lambda: None)  # type: ignore[arg-type]
    slots = ProviderSlots(cap=8, backoff=Backoff(), limit=8)
    limits._apply({"one": slots}, {"one": Share(8, 8, 30.0)})
    until = slots.paused_until
    assert 0 < until - time.monotonic() <= 30.0
    assert limits._report("one", slots).pause_s == 0.0
    limits._apply({"one": slots}, {"one": Share(8, 8, 1.0)})
    assert slots.paused_until == until
    slots.pause(until + 60.0)
    assert 60.0 < limits._report("one", slots).pause_s <= 90.0
