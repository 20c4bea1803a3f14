"""A gateway that is killed or interrupted loses nothing committed and buys nothing twice."""

from __future__ import annotations

import os
import signal
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from resources.gateway.progress import ModelProgress
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, Fault, always
from tests.made.responses import stored
from tests.resources import forked
from tests.resources.gateway.gateway_setup import gateway, model, requests
from tests.waiting import wait_until

IN_FLIGHT = 8


def _run(store: Path, base_url: str, timeout: float, grace: float, lines: Queue[str]) -> None:
    spec = model(None, api_base=base_url, max_concurrency=IN_FLIGHT, timeout=timeout)
    with ResponseStore(store) as opened:
        try:
            gateway(opened, grace=grace, tell=lines.put).answer(requests(spec, 300))
        except KeyboardInterrupt:
            lines.put("KeyboardInterrupt")


def start(store: Path, server: FakeLLM, *, timeout: float = 20, grace: float = 30) -> tuple[BaseProcess, Queue[str]]:
    """A run in a process of its own, once its calls are in flight; and the lines that it tells."""
    context = forked.context()
    lines: Queue[str] = context.Queue()
    run = context.Process(target=_run, args=(store, server.base_url, timeout, grace, lines), daemon=True)
    run.start()
    wait_until(lambda: len(server.calls) >= IN_FLIGHT)
    return run, lines


def interrupt(run: BaseProcess) -> None:
    assert run.pid is not None
    os.kill(run.pid, signal.SIGINT)


class TestInterruption:
    def test_a_killed_run_loses_no_committed_response_and_buys_none_twice(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.sqlite"
        with FakeLLM(latency=0.02) as server:
            run, _ = start(path, server)
            wait_until(lambda: server.answered >= 60)
            run.kill()
            run.join()
            server.await_nobody()
            with ResponseStore(path) as store:
                committed = stored(store)
                assert 0 < server.answered - IN_FLIGHT <= committed < 300
                asked_before, wanted = server.answered, requests(model(server, max_concurrency=IN_FLIGHT), 300)
                outcome = gateway(store).answer(wanted)
                assert (outcome.failures, outcome.n_sent, outcome.replayed) == ({}, 300 - committed, committed)
                assert server.answered == asked_before + 300 - committed
                assert stored(store) == store.responses([request.key for request in wanted]).num_rows == 300

    def test_ctrl_c_waits_for_what_is_in_flight_and_sends_nothing_more(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.sqlite"
        with FakeLLM(latency=1.0) as server:
            run, lines = start(path, server)
            interrupt(run)
            assert "waiting up to 30 s for 8 calls in flight" in lines.get(timeout=60)
            assert lines.get(timeout=60) == "KeyboardInterrupt"
            run.join(timeout=60)
            assert len(server.calls) == server.answered == IN_FLIGHT
        with ResponseStore(path) as store, Claims(store) as other:
            assert stored(store) == IN_FLIGHT
            # Nothing is held any more.
            keys = {request.key for request in requests(model(None), 300)}
            claimed = other.claim(sorted(keys))
            assert claimed.mine | claimed.answered == keys

    def test_a_second_ctrl_c_stops_at_once(self, tmp_path: Path) -> None:
        with FakeLLM(fault=always(Fault("hang", seconds=300))) as server:
            run, lines = start(tmp_path / "responses.sqlite", server, timeout=600, grace=600)
            interrupt(run)
            assert "for 8 calls in flight; interrupt again to stop at once" in lines.get(timeout=60)
            interrupt(run)
            # The first interrupt alone would wait for ten minutes.
            assert lines.get(timeout=60) == "KeyboardInterrupt"
            run.kill()

    def test_an_exception_in_the_progress_display_stops_the_run_in_order(self, store: ResponseStore) -> None:
        def progress(models: tuple[ModelProgress, ...]) -> None:
            if models[0].done > 3:
                raise KeyboardInterrupt

        with FakeLLM(latency=0.05) as server, pytest.raises(KeyboardInterrupt):
            gateway(store).answer(requests(model(server, max_concurrency=2), 200), on_progress=progress)
        assert 3 < stored(store) < 200
