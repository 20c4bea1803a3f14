"""Several machines, for real on loopback: PostgreSQL, Redis, an S3 server, Dagster's daemon, and workers of Celery with homes of their own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest
import yaml

from resources.responses.store import ResponseStore
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.launched import status_of
from tests.assets.stage_names import STAGE_NAMES
from tests.dtef_pipeline.cli.commands import distribution
from tests.fake_llm_server import Call, FakeLLM
from tests.made.responses import stored
from tests.postgres import NoPostgres
from tests.redis_server import NoRedis
from tests.several_machines import POLL_S, Machines, several_machines

ROUNDS = ("M1", "M2")
AT_ONCE = 2
"""Calls of one run."""
FIRST_ANSWERS = 4
"""Of each round, before the kill."""

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed in 2.0:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),  # by Celery
]


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


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machines, FakeLLM, Gate]]:
    gate = Gate()
    with ExitStack() as stack:
        server = stack.enter_context(FakeLLM(reply=gate))
        stack.callback(gate.opened.set)
        spec = {"model": "openai/fake", "api_base": server.base_url, "retries": 1, "max_concurrency": AT_ONCE}
        (tmp_path / "models.yaml").write_text(yaml.safe_dump({"models": {"fake": spec}}), encoding="utf-8")
        given = {"DTEF_MODELS": str(tmp_path / "models.yaml"), "DTEF_PARTITIONS_PER_RUN": "3"}
        try:
            yield stack.enter_context(several_machines(tmp_path, **given)), server, gate
        except (NoPostgres, NoRedis) as why:
            pytest.skip(str(why))


def write_rounds(folder: Path) -> Path:
    """The same prompt is bought once, whatever its round: each round has questions of its own."""
    file = write_survey(folder / "surveys.csv", ROUNDS, questions=4)
    lines = [line.replace("Question", f"In {line[:2]}: question", 1) for line in file.read_text("utf-8").splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_killed_worker_loses_no_response_and_repeats_no_request(
    machines: tuple[Machines, FakeLLM, Gate], tmp_path: Path
) -> None:
    house, server, gate = machines
    house.start_all("worker1", "worker2")
    with house.instance() as instance:
        pipeline = Pipeline(instance, Warehouse(house.environment["DTEF_WAREHOUSE"]))
        pipeline.register(write_rounds(tmp_path))
        backfill = house.backfill(instance, pipeline.keys, STAGE_NAMES[:3], {"predictions": {"models": ["fake"]}})
        house.until(lambda: server.busy == 2 * AT_ONCE, "both workers wait for the model")
        first = house.runs(instance, backfill)
        assert {house.worker_of(run) for run in first} == {"worker1", "worker2"}
        bought = len(server.calls) - server.busy
        assert bought == len(ROUNDS) * FIRST_ANSWERS
        house.processes["worker1"].kill()
        gate.opened.set()
        assert house.await_backfill(instance, backfill) == "COMPLETED_SUCCESS"
        runs = house.runs(instance, backfill)
        lost, again = [run for run in runs if house.worker_of(run) == "worker1"], [run for run in runs if run.parent_run_id]
        assert [run.status for run in lost] == [dg.DagsterRunStatus.FAILURE]
        assert [run.parent_run_id for run in again] == [lost[0].run_id]
        assert [house.worker_of(run) for run in again] == ["worker2"]
        assert {run.status for run in runs if run not in lost} == {dg.DagsterRunStatus.SUCCESS}
        said = [entry.message for entry in instance.all_logs(lost[0].run_id)]
        assert any("no sign of life of the run on worker1@" in message for message in said), said
        rows = [row for key in pipeline.keys for row in predictions(pipeline.house, key)]
    assert {row["error"] for row in rows} == {None}
    assert len(rows) == len({row["request_key"] for row in rows})
    with ResponseStore(house.environment["DTEF_RESPONSES"]) as store:
        assert stored(store) == len(rows) == len(server.answers)
    # Of the killed worker's calls those that were in flight were made again, and no other. (Its process outlives the worker for a moment.)
    assert 0 <= len(server.calls) - len(rows) <= AT_ONCE
    assert not list(tmp_path.rglob("*.parquet"))  # all tables are in the object store


@pytest.mark.thorough
def test_a_run_whose_broker_was_restarted_and_whose_worker_is_being_stopped_is_watched_and_can_be_terminated(
    machines: tuple[Machines, FakeLLM, Gate], tmp_path: Path
) -> None:
    house, server, gate = machines
    house.start_all("worker1")
    with house.instance() as instance:
        pipeline = Pipeline(instance, Warehouse(house.environment["DTEF_WAREHOUSE"]))
        pipeline.register(write_rounds(tmp_path))
        keys = [key for key in pipeline.keys if key.startswith("M1/")]
        config = {"predictions": {"models": ["fake"]}}
        stopped = house.backfill(instance, keys, STAGE_NAMES[:3], config)
        house.until(lambda: server.busy == AT_ONCE, "the worker waits for the model")
        house.broker.kill()
        house.broker.start()
        (run,) = house.runs(instance, stopped)
        with house.stopping("worker1"):
            time.sleep(house.gone_after_s + 3 * POLL_S)
            assert status_of(instance, run) == dg.DagsterRunStatus.STARTED
            assert instance.run_launcher.terminate(run.run_id)
            house.until(
                lambda: _says(tmp_path / "worker1", b"interrupted: waiting"), "the run waits for its calls in flight alone"
            )
            gate.opened.set()
            house.until(lambda: status_of(instance, run) == dg.DagsterRunStatus.CANCELED, "the run ends")
        with ResponseStore(house.environment["DTEF_RESPONSES"]) as store:
            bought = stored(store)
        assert bought == len(server.calls) == FIRST_ANSWERS + AT_ONCE
        assert not house.runs(instance, stopped)[1:]  # it was told to end, and is not started again
        house.start_worker("worker2")
        house.await_workers("worker2")
        house.broker.kill()
        again = house.backfill(instance, keys, STAGE_NAMES[:3], config)
        house.until(lambda: _waits_for_broker(house, instance, again), "the launch waits for the broker")
        house.broker.start()
        assert house.await_backfill(instance, again) == "COMPLETED_SUCCESS"
        rows = [row for key in keys for row in predictions(pipeline.house, key)]
    assert {row["error"] for row in rows} == {None}
    assert len(rows) == len(server.calls)  # no call was made twice


def _waits_for_broker(house: Machines, instance: dg.DagsterInstance, backfill: str) -> bool:
    logs = (instance.all_logs(run.run_id) for run in house.runs(instance, backfill))
    return any("The broker cannot be reached" in entry.message for log in logs for entry in log)


def _says(home: Path, words: bytes) -> bool:
    """Whether what a machine has written, what its runs printed among it, has these words."""
    return any(words in file.read_bytes() for file in home.rglob("*") if file.is_file())


def predictions(house: Warehouse, key: str) -> list[dict[str, object]]:
    round_id, segment = key.split("/")
    rows = house.read("predictions", round=round_id, segment=segment).to_pylist()
    return [row for row in rows if row["model"] == "fake"]
