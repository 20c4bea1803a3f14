"""Runs in three processes share the limit of a provider: a real server counts the calls that it has at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from resources.gateway.retries import Backoff
from resources.gateway.shared_limits import SharedLimits
from resources.gateway.slots import FIRST_LIMIT, ProviderSlots
from resources.responses.provider_shares import Share
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault
from tests.made.responses import stored
from tests.resources import forked
from tests.resources.gateway.gateway_setup import await_answers, gateway, model, requests

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


@pytest.mark.thorough
def test_without_a_limit_that_is_given_they_begin_together_with_that_of_one_run(location: str) -> None:
    """Three runs began with three times as many calls as one."""
    opened = threading.Event()

    def held(call: Call) -> str:
        opened.wait(60)
        return "[40, 30, 20, 10]"

    with FakeLLM(reply=held) as server, runs(location, server, 60, {}) as told:
        deadline = time.monotonic() + 60
        while server.busy < FIRST_LIMIT and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(2.5)  # time in which more would be sent
        assert server.peak == FIRST_LIMIT
        opened.set()
        assert [one.recv() for one in told] == [0] * PROCESSES


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


def test_a_pause_of_another_run_is_not_told_of_as_ones_own() -> None:
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


@pytest.mark.thorough
def test_a_pause_that_one_run_was_told_holds_for_the_others(tmp_path: Path) -> None:
    """Each run learned of it by a refusal of its own."""
    refused: list[float] = []

    def first_of_all(call: Call) -> Fault | None:
        if not refused:
            refused.append(time.monotonic())
            return Fault("status", status=429, retry_after="8")
        return None

    place = str(tmp_path / "responses.sqlite")
    with FakeLLM(latency=0.05, fault=first_of_all) as server, runs(place, server, 150, of(server, 2)) as told:
        assert [one.recv() for one in told] == [0] * PROCESSES
        # All look every second: after some seconds all know of it, also on a busy machine, and nobody asks until the eight are over.
        assert [call for call in server.calls if refused[0] + 5 < call.arrived_at < refused[0] + 8] == []
        assert len(server.calls) == PROCESSES * 150 + 1


@pytest.mark.thorough
def test_a_run_that_joins_gets_its_part_while_the_first_goes_on(location: str) -> None:
    """One that refilled each place at once let go of nothing, so the second waited for its end."""
    context = forked.context()
    ResponseStore(location).close()
    with FakeLLM(latency=0.02) as server:
        pipes, processes = [], []
        for number, count in enumerate((100_000, 20)):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (location, server.base_url, f"s{number}", count, of(server, 4), theirs)
            processes.append(context.Process(target=_run, args=arguments))
            processes[-1].start()
            pipes.append(ours)
            await_answers(server, 20)
        try:
            assert pipes[1].poll(120), "the second run waits"
            assert pipes[1].recv() == 0
            assert not pipes[0].poll()
            assert server.peak == 4
        finally:
            for process in processes:
                process.kill()
                process.join()
