"""Runs on two machines that share PostgreSQL and an object store; each has a home of Dagster of its own."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest

from resources.responses.store import ResponseStore
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.family_state import STAGE_NAMES
from tests.assets.rubric.run_stages import StageRunner, stage_runner
from tests.dtef_pipeline.cli.commands import distribution
from tests.fake_llm_server import Call, FakeLLM
from tests.made.models_file import write_models
from tests.made.responses import stored
from tests.servers import move_to, state_on_servers
from tests.waiting import wait_until

ROUNDS, SEGMENT = ("M1", "M2"), "country:kenya"
AT_ONCE = 2
"""Calls of one run."""
FIRST_ANSWERS = 4
"""Of each round, before the kill."""


class Gate:
    """Answers the first requests of each round, and holds the others up until it is opened."""

    def __init__(self) -> None:
        self._passed: Counter[str] = Counter()
        self._lock, self.opened = threading.Lock(), threading.Event()

    def __call__(self, call: Call) -> str:
        round_id = next(name for name in ROUNDS if f"In {name}:" in call.user)
        with self._lock:
            self._passed[round_id] += 1
            waits = self._passed[round_id] > FIRST_ANSWERS
        if waits:
            self.opened.wait(300)
        return distribution(call, 40.0)


def write_rounds(folder: Path) -> Path:
    """The same prompt is bought once, whatever its round: each round has questions of its own."""
    file = write_survey(folder / "surveys.csv", ROUNDS, questions=8)
    lines = [line.replace("Question", f"In {line[:2]}: question", 1) for line in file.read_text("utf-8").splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def predictions(house: Warehouse, round_id: str) -> list[dict[str, object]]:
    rows = house.read("predictions", round=round_id, segment=SEGMENT).to_pylist()
    return [row for row in rows if row["model"] == "fake"]


def start(runner: StageRunner, round_id: str) -> int:
    return runner.start({"predictions": {"models": ["fake"]}}, STAGE_NAMES[:3], [f"{round_id}/{SEGMENT}"])


def test_a_killed_run_loses_no_response_and_repeats_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with state_on_servers(tmp_path, monkeypatch):
        with FakeLLM(reply=gate) as server, stage_runner() as runner:
            models = write_models(tmp_path, ["fake"], api_base=server.base_url, retries=1, max_concurrency=AT_ONCE)
            monkeypatch.setenv("DTEF_MODELS", str(models))
            move_to(tmp_path / "first", monkeypatch)
            with dg.DagsterInstance.get() as instance:
                pipeline = Pipeline(instance, Warehouse(os.environ["DTEF_WAREHOUSE"]))
                pipeline.register(write_rounds(tmp_path))
                killed = start(runner, "M1")
                move_to(tmp_path / "second", monkeypatch)
                other = start(runner, "M2")
                # Calls that are about to be answered are busy, too.
                waiting = len(ROUNDS) * AT_ONCE, len(ROUNDS) * (FIRST_ANSWERS + AT_ONCE)
                assert wait_until(lambda: (server.busy, len(server.calls)) == waiting, 300), "both runs wait for the model"
                os.kill(killed, signal.SIGKILL)
                assert runner.await_end(killed) == -signal.SIGKILL
                again = start(runner, "M1")
                gate.opened.set()
                assert (runner.await_end(other), runner.await_end(again)) == (0, 0)
                statuses = Counter(run.status for run in instance.get_runs())
                rows = [row for round_id in ROUNDS for row in predictions(pipeline.house, round_id)]
        assert statuses == {dg.DagsterRunStatus.SUCCESS: 2, dg.DagsterRunStatus.FAILURE: 1}
        assert {row["error"] for row in rows} == {None}
        assert len(rows) == len({row["request_key"] for row in rows})
        with ResponseStore(os.environ["DTEF_RESPONSES"]) as store:
            assert stored(store) == len(rows) == len(server.answers)
        # Of the killed run's calls those that were in flight were made again, and no other.
        assert 0 <= len(server.calls) - len(rows) <= AT_ONCE
        assert not list(tmp_path.rglob("*.parquet"))  # all tables are in the object store
