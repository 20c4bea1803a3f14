"""Backfills as the UI launches them: through Dagster's GraphQL and its backfill daemon. Where it matters, the code is in a server of its own and
each run in a process of its own; elsewhere both are here, as starting them takes longer than the runs."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget, ModuleTarget, WorkspaceLoadTarget
from dagster._daemon import sensor as sensor_daemon
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_graphql.client.query import LAUNCH_PARTITION_BACKFILL_MUTATION, LAUNCH_PIPELINE_REEXECUTION_MUTATION
from dagster_graphql.test.utils import execute_dagster_graphql

from assets.engine.roll_up_names import ROLL_UP_NAMES
from assets.launch import STAGE_NAMES
from assets.stage.dagster_internals import RANGE_END, RANGE_START
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import distribution, serve_as, use
from tests.fake_llm_server import FakeLLM

GREEN, RED = "MATERIALIZED", "FAILED"
ROUNDS = ("B1", "B2", "B3", "B4")
INSTANCE = """
telemetry: {enabled: false}
code_servers: {wait_for_local_processes_on_shutdown: true, local_startup_timeout: 180}
run_coordinator: {module: dagster.core.run_coordinator, class: DefaultRunCoordinator}
"""
CANCEL = "mutation($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"
_log = logging.getLogger("backfills")

pytestmark = [
    # Dagster's backfills use what Dagster itself has deprecated.
    pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed in 2.0:DeprecationWarning"),
    # A run in this process is executed within the event loop of the backfill daemon, where none other can be closed in order.
    pytest.mark.filterwarnings("ignore:.*shutdown_asyncgens:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class UI:
    """A running Dagster with the pipeline loaded: what its buttons do."""

    def __init__(self, workspace: WorkspaceProcessContext, pipeline: Pipeline, server: FakeLLM, pause: float) -> None:
        """`pause`: seconds between two turns of the daemon, which take time from the processes that it waits for."""
        self.workspace, self.pipeline, self.server, self.pause = workspace, pipeline, server, pause
        self.minutes = 0

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.pipeline.instance

    def ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        (answer,) = execute_dagster_graphql(self.workspace.create_request_context(), query, variables).data.values()
        return dict(answer)

    def backfill(self, keys: Sequence[str], names: Sequence[str] = STAGE_NAMES) -> str:
        """*Launch backfill*, asking the model `fake`; its id."""
        config = {"ops": {"predictions": {"config": {"models": ["fake"]}}}} if "predictions" in names else {}
        params = {
            "assetSelection": [{"path": [name]} for name in names],
            "partitionNames": list(keys),
            "runConfigData": config,
            "tags": [],
        }
        answer = self.ask(LAUNCH_PARTITION_BACKFILL_MUTATION, {"backfillParams": params})
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def again(self, run: dg.DagsterRun, strategy: str) -> dg.DagsterRun:
        """*Re-execute* a run, to its end."""
        params = {"parentRunId": run.run_id, "strategy": strategy}
        answer = self.ask(LAUNCH_PIPELINE_REEXECUTION_MUTATION, {"reexecutionParams": params})
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run_id = answer["run"]["runId"]
        self.until(lambda: self._run(run_id).is_finished)
        return self._run(run_id)

    def turn(self) -> None:
        """One turn of the backfill daemon."""
        faults = [fault for fault in execute_backfill_iteration(self.workspace, _log) if fault]
        assert faults == []

    def follow(self) -> list[dg.DagsterRun]:
        """One turn of the sensor daemon, a minute later; the roll-ups of surveys that it launched."""
        boards = dg.RunsFilter(job_name="survey_roll_ups")
        before = {run.run_id for run in self.instance.get_runs(boards)}
        self.minutes += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sensor_daemon, "get_current_timestamp", lambda: time.time() + 60 * self.minutes)
            faults = [fault for fault in sensor_daemon.execute_sensor_iteration(self.workspace, _log, None, None) if fault]
        assert faults == []
        return [run for run in self.instance.get_runs(boards) if run.run_id not in before]

    def finish(self, *ids: str) -> list[dg.DagsterRun]:
        """Turn until the backfills have ended; their runs, oldest first."""

        def ended() -> bool:
            self.turn()
            going = (BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING)
            return all(self._backfill(one).status not in going for one in ids)

        self.until(ended, self.pause)
        return [run for one in ids for run in self.runs(one)]

    def runs(self, backfill: str) -> list[dg.DagsterRun]:
        return list(reversed(self.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))))

    def status_of(self, backfill: str) -> str:
        return str(self._backfill(backfill).status.value)

    def until(self, reached: Callable[[], bool], pause: float = 0.1) -> None:
        deadline = time.monotonic() + 240
        while not reached():
            assert time.monotonic() < deadline, "not reached in four minutes"
            time.sleep(pause)

    def asked(self, keys: Sequence[str]) -> int:
        """Answers of the server that the partitions hold."""
        return sum(row["model"] == "fake" for key in keys for row in self.rows("predictions", key))

    def rows(self, table: str, key: str) -> list[dict[str, Any]]:
        round_id, segment = key.split("/")
        return list(self.pipeline.house.read(table, round=round_id, segment=segment).to_pylist())

    def colours(self, keys: Sequence[str], names: Sequence[str] = STAGE_NAMES) -> dict[str, dict[str, str | None]]:
        return {name: {key: status for key, status in self.pipeline.status(name).items() if key in keys} for name in names}

    def _run(self, run_id: str) -> dg.DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def _backfill(self, backfill: str) -> Any:
        return self.instance.get_backfill(backfill)


@contextmanager
def running(folder: Path, launcher: str, target: WorkspaceLoadTarget, pause: float) -> Iterator[UI]:
    with pytest.MonkeyPatch.context() as patch, FakeLLM(reply=lambda call: distribution(call, 40.0)) as server:
        use(folder, patch)
        serve_as(server, folder, patch)
        (folder / "dagster").mkdir()
        (folder / "dagster" / "dagster.yaml").write_text(INSTANCE + launcher, encoding="utf-8")
        with dg.DagsterInstance.get() as instance, WorkspaceProcessContext(instance, target) as workspace:
            pipeline = Pipeline(instance, Warehouse(folder / "warehouse"))
            file = write_survey(folder / "surveys.csv", ROUNDS)
            # The same prompt is bought once, whatever its round: each round has questions of its own.
            lines = [line.replace("Question", f"In {line[:2]}: question", 1) for line in file.read_text("utf-8").splitlines()]
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            pipeline.register(file)
            yield UI(workspace, pipeline, server, pause)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    code = LoadableTargetOrigin(executable_path=sys.executable, module_name="assets.definitions", working_directory=str(ROOT))
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(code, location_name="dtef"))
    launcher = "run_launcher: {module: dagster._core.launcher.sync_in_memory_run_launcher, class: SyncInMemoryRunLauncher}"
    with running(tmp_path_factory.mktemp("here"), launcher, target, pause=0.1) as ui:
        yield ui


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    target = ModuleTarget("assets.definitions", None, str(ROOT), "dtef")
    with running(tmp_path_factory.mktemp("processes"), "", target, pause=1.0) as ui:
        yield ui


def keys_of(ui: UI, round_id: str) -> list[str]:
    return [key for key in ui.pipeline.keys if key.startswith(f"{round_id}/")]


def all_of(keys: Sequence[str], colour: str, but: dict[str, str] | None = None) -> dict[str, str]:
    return {**dict.fromkeys(keys, colour), **(but or {})}


def test_a_round_is_one_run_and_its_boards_another(here: UI) -> None:
    ui = here
    keys, before = keys_of(ui, "B1"), ui.server.answered
    backfill = ui.backfill(keys, [*STAGE_NAMES, *ROLL_UP_NAMES])
    stages, boards = ui.finish(backfill)
    assert ui.status_of(backfill) == "COMPLETED_SUCCESS"
    assert {key.to_user_string() for key in stages.asset_selection or ()} == set(STAGE_NAMES)
    assert {key.to_user_string() for key in boards.asset_selection or ()} == set(ROLL_UP_NAMES)
    assert ui.colours(keys) == dict.fromkeys(STAGE_NAMES, all_of(keys, GREEN))
    assert ui.server.answered - before == ui.asked(keys) == 3 * 3
    assert ui.follow() == [], "the backfill made the boards itself"


@pytest.mark.thorough
def test_a_bad_segment_fails_alone_and_each_way_to_retry_mends_it(here: UI) -> None:
    """Re-executed from the failure, the last stage alone was run, skipped what had failed before it, and was red forever."""
    ui = here
    keys, bad, later = keys_of(ui, "B2"), "B2/country:india", STAGE_NAMES[1:]
    ui.finish(ui.backfill(keys, STAGE_NAMES[:1]))
    file = ui.pipeline.file("survey_responses", bad)
    good, before = file.read_bytes(), ui.server.answered
    file.write_bytes(b"junk")
    backfill = ui.backfill(keys, [*later, *ROLL_UP_NAMES])
    (failed,) = ui.finish(backfill)
    red = dict.fromkeys(later, all_of(keys, GREEN, {bad: RED}))
    assert failed.status == dg.DagsterRunStatus.FAILURE
    assert ui.colours(keys, later) == red
    assert ui.server.answered - before == 2 * 3
    # Dagster starts no roll-ups then; the sensor does, as after a backfill of stages alone.
    assert ui.status_of(backfill) == "COMPLETED_FAILED"
    (boards,) = ui.follow()
    assert boards.status == dg.DagsterRunStatus.SUCCESS
    assert "B2" in Path(ui.pipeline.house.root, "report", "data.html").read_text(encoding="utf-8")
    assert ui.follow() == []

    # While it is broken, trying again changes nothing for the others and buys nothing.
    still = ui.again(failed, "FROM_FAILURE")
    assert still.status == dg.DagsterRunStatus.FAILURE
    assert set(still.step_keys_to_execute or ()) >= set(later)
    assert ui.colours(keys, later) == red
    assert ui.server.answered - before == 2 * 3

    file.write_bytes(good)
    mended = ui.again(still, "FROM_FAILURE")
    assert mended.status == dg.DagsterRunStatus.SUCCESS
    assert ui.colours(keys, later) == dict.fromkeys(later, all_of(keys, GREEN))
    assert ui.server.answered - before == 3 * 3

    file.write_bytes(b"junk")
    (broken,) = ui.finish(ui.backfill(keys, later))
    file.write_bytes(good)
    assert ui.colours(keys, later) == red
    assert ui.again(broken, "ALL_STEPS").status == dg.DagsterRunStatus.SUCCESS
    assert ui.colours(keys, later) == dict.fromkeys(later, all_of(keys, GREEN))

    file.write_bytes(b"junk")
    ui.finish(ui.backfill(keys, later))
    file.write_bytes(good)
    untouched = {key: _last_run(ui, key) for key in keys if key != bad}
    (alone,) = ui.finish(ui.backfill([bad], later))  # *Materialize failed partitions* selects exactly these
    assert (alone.tags[RANGE_START], alone.tags[RANGE_END]) == (bad, bad)
    assert ui.colours(keys, later) == dict.fromkeys(later, all_of(keys, GREEN))
    assert {key: _last_run(ui, key) for key in untouched} == untouched
    assert ui.server.answered - before == 3 * 3


@pytest.mark.thorough
def test_what_was_cancelled_goes_on_when_it_is_launched_again(processes: UI) -> None:
    ui = processes
    keys, before = keys_of(ui, "B3"), ui.server.answered
    ui.server.latency = 1.0
    first = ui.backfill(keys)

    def launched() -> bool:
        ui.turn()
        return bool(ui.runs(first))

    ui.until(launched)
    ui.until(lambda: ui.server.answered > before)
    assert ui.ask(CANCEL, {"id": first})["__typename"] == "CancelBackfillSuccess"
    (cancelled,) = ui.finish(first)
    ui.server.latency = 0.0
    assert ui.status_of(first) == "CANCELED"
    assert cancelled.status == dg.DagsterRunStatus.CANCELED
    ui.finish(ui.backfill(keys))
    assert ui.colours(keys) == dict.fromkeys(STAGE_NAMES, all_of(keys, GREEN))
    assert ui.asked(keys) == 3 * 3
    assert ui.server.answered - before == 3 * 3, "an answer was bought twice"


def test_roll_ups_go_on_without_a_file_that_cannot_be_read_and_name_it(done: Pipeline) -> None:
    file = done.file("scores", done.keys[0], snapshot="base")
    file.write_bytes(pq.ParquetFile(file).read().to_string().encode())
    made = done.roll_up()
    assert made.failures == ()
    assert str(file) in dict(made.skipped)


def _last_run(ui: UI, key: str) -> str:
    records = ui.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey("drift_checks"), asset_partitions=[key]), limit=1
    ).records
    return records[0].run_id
