"""`dtef run` killed in the midst of asking: the responses so far are kept, and the same command asks for the rest alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.responses.store import ResponseStore
from tests.dtef_pipeline.cli.commands import SEGMENTS, distribution, ok, query, serve_as, skip_board
from tests.fake_llm_server import FakeLLM
from tests.made.responses import stored


class TestKilled:
    def test_nothing_committed_is_asked_again_or_lost(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        prompts, draws = 15, 3
        total = prompts * draws
        what = ["--model", "fake", "--context", "0", "--draws", str(draws), "--limit", f"fake={prompts}"]
        run = ["run", "--no-roll-ups", "--round", "S1", "--segment", SEGMENTS[0], *what]
        with FakeLLM(reply=lambda call: distribution(call, 40), latency=0.1) as server:
            serve_as(server, ingested, monkeypatch)
            command = [str(Path(sys.executable).with_name("dtef")), *run]
            process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 120
            while server.answered < total // 3 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            server.await_nobody()
            with ResponseStore(ingested / "responses.sqlite") as store:
                committed = stored(store)
            assert 0 < committed < total
            assert server.answered - committed <= 2 * 4
            answered = server.answered
            server.latency = 0.0
            skip_board(monkeypatch)
            ok(*run)
            # Two of the questions have one text, which is asked once.
            requests = len(server.answers) * draws
            assert total - 2 * draws <= requests <= total
            assert server.answered == answered + requests - committed
        rows = query("SELECT segment, question_id, draw, request_key, call_status FROM predictions WHERE model = 'fake'")
        assert len({(row["segment"], row["question_id"], row["draw"]) for row in rows}) == total
        assert len(rows) == total
        assert len({row["request_key"] for row in rows}) == requests
        assert {row["call_status"] for row in rows} == {"answered"}
        with ResponseStore(ingested / "responses.sqlite") as store:
            assert stored(store) == requests
        assert query("SELECT count(*) AS n FROM scores WHERE model = 'fake' AND status = 'ok'") == [{"n": total}]
        import dagster as dg

        with dg.DagsterInstance.get() as instance:
            statuses = {run.status for run in instance.get_runs()}
        assert statuses == {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}


@pytest.mark.thorough
def test_ctrl_c_says_one_line_and_no_traceback(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends it to every process: those of Dagster that show a step's output printed a traceback each."""
    with FakeLLM(reply=lambda call: distribution(call, 40), latency=0.5) as server:
        serve_as(server, ingested, monkeypatch)
        what = ["--round", "S1", "--segment", SEGMENTS[0], "--model", "fake", "--context", "0"]
        command = [str(Path(sys.executable).with_name("dtef")), "run", "--no-roll-ups", *what]
        process = subprocess.Popen(
            command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        deadline = time.monotonic() + 120
        while server.answered < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1.0)  # the processes in question need a moment to start, and the run takes many
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert errors.rstrip().splitlines()[-1].startswith("interrupted")
