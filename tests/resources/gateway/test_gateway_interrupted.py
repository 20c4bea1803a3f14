"""A gateway that is killed or interrupted loses nothing committed and buys nothing twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from resources.gateway.progress import ModelProgress
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault, always
from tests.made.responses import stored
from tests.resources.gateway.gateway_setup import gateway, model, requests
from tests.waiting import wait_until

RUN = """
    import sys
    from resources.gateway import Gateway
    from resources.responses.store import ResponseStore
    from tests.resources.gateway.gateway_setup import model, requests
    spec = model(None, api_base=sys.argv[2], max_concurrency=8, timeout=float(sys.argv[3]))
    with ResponseStore(sys.argv[1]) as store:
        print(Gateway(store, environ={"M_KEY": "k-k-k-k"}, grace=float(sys.argv[4])).answer(requests(spec, 300)))
"""
IN_FLIGHT = 8


def start(store: Path, server: FakeLLM, *, timeout: float = 20, grace: float = 30) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(RUN), str(store), server.base_url, str(timeout), str(grace)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class TestInterruption:
    def test_a_killed_run_loses_no_committed_response_and_buys_none_twice(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.sqlite"
        with FakeLLM(latency=0.02) as server:
            run = start(path, server)
            wait_until(lambda: server.answered >= 60)
            run.send_signal(signal.SIGKILL)
            run.communicate()
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
            run = start(path, server)
            wait_until(lambda: len(server.calls) >= IN_FLIGHT)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=60)
            assert "KeyboardInterrupt" in errors
            assert "waiting up to 30 s for 8 calls in flight" in errors
            assert len(server.calls) == server.answered == IN_FLIGHT
        with ResponseStore(path) as store, Claims(store) as other:
            assert stored(store) == IN_FLIGHT
            # Nothing is held any more.
            keys = {request.key for request in requests(model(None), 300)}
            claimed = other.claim(sorted(keys))
            assert claimed.mine | claimed.answered == keys

    def test_a_second_ctrl_c_stops_at_once(self, tmp_path: Path) -> None:
        with FakeLLM(fault=always(Fault("hang", seconds=300))) as server:
            run = start(tmp_path / "responses.sqlite", server, timeout=600, grace=600)
            watchdog = threading.Timer(90, run.kill)
            watchdog.start()
            wait_until(lambda: len(server.calls) >= IN_FLIGHT)
            run.send_signal(signal.SIGINT)
            assert run.stderr is not None
            # Read up to the line that invites the second one.
            told = next(line for line in run.stderr if "interrupt again to stop at once" in line)
            assert "for 8 calls in flight" in told
            run.send_signal(signal.SIGINT)
            # The first interrupt alone would wait for ten minutes.
            _, errors = run.communicate()
            watchdog.cancel()
            assert run.returncode not in (0, -signal.SIGKILL)
            assert "KeyboardInterrupt" in errors

    def test_an_exception_in_the_progress_display_stops_the_run_in_order(self, store: ResponseStore) -> None:
        def progress(models: tuple[ModelProgress, ...]) -> None:
            if models[0].done > 3:
                raise KeyboardInterrupt

        with FakeLLM(latency=0.05) as server, pytest.raises(KeyboardInterrupt):
            gateway(store).answer(requests(model(server, max_concurrency=2), 200), on_progress=progress)
        assert 3 < stored(store) < 200
