"""Backfills as the UI launches them: through Dagster's GraphQL and its backfill daemon, with code and runs in this process."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon import sensor as sensor_daemon
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_graphql.client.query import LAUNCH_PARTITION_BACKFILL_MUTATION
from dagster_graphql.test.utils import execute_dagster_graphql

from assets.engine.roll_up_names import ROLL_UP_NAMES
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.family_state import GREEN, STAGE_NAMES
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import distribution, serve_as, skip_site, use
from tests.fake_llm_server import FakeLLM

INSTANCE = """
telemetry: {enabled: false}
run_coordinator: {module: dagster.core.run_coordinator, class: DefaultRunCoordinator}
run_launcher: {module: dagster._core.launcher.sync_in_memory_run_launcher, class: SyncInMemoryRunLauncher}
"""
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

    def __init__(self, workspace: WorkspaceProcessContext, pipeline: Pipeline, server: FakeLLM) -> None:
        self.workspace, self.pipeline, self.server = workspace, pipeline, server
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

    def finish(self, backfill: str) -> list[dg.DagsterRun]:
        """Let the backfill daemon turn until the backfill has ended; its runs, oldest first."""
        deadline = time.monotonic() + 240
        while (found := self.instance.get_backfill(backfill)) and found.status is BulkActionStatus.REQUESTED:
            assert time.monotonic() < deadline, "not ended in four minutes"
            assert [fault for fault in execute_backfill_iteration(self.workspace, _log) if fault] == []
        assert found is not None
        assert found.status is BulkActionStatus.COMPLETED_SUCCESS
        return list(reversed(self.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))))


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    folder = tmp_path_factory.mktemp("here")
    code = LoadableTargetOrigin(executable_path=sys.executable, module_name="assets.definitions", working_directory=str(ROOT))
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(code, location_name="dtef"))
    with pytest.MonkeyPatch.context() as patch, FakeLLM(reply=lambda call: distribution(call, 40.0)) as server:
        use(folder, patch)
        skip_site(patch)
        serve_as(server, folder, patch)
        (folder / "dagster").mkdir()
        (folder / "dagster" / "dagster.yaml").write_text(INSTANCE, encoding="utf-8")
        with dg.DagsterInstance.get() as instance, WorkspaceProcessContext(instance, target) as workspace:
            pipeline = Pipeline(instance, Warehouse(folder / "warehouse"))
            pipeline.register(write_survey(folder / "surveys.csv", ["B1"]))
            yield UI(workspace, pipeline, server)


def test_a_round_is_one_run_and_its_boards_another(ui: UI) -> None:
    keys, before = ui.pipeline.keys, ui.server.answered
    backfill = ui.backfill(keys, [*STAGE_NAMES, *ROLL_UP_NAMES])
    stages, boards = ui.finish(backfill)
    assert {key.to_user_string() for key in stages.asset_selection or ()} == set(STAGE_NAMES)
    assert {key.to_user_string() for key in boards.asset_selection or ()} == set(ROLL_UP_NAMES)
    assert {name: ui.pipeline.status(name) for name in STAGE_NAMES} == dict.fromkeys(STAGE_NAMES, dict.fromkeys(keys, GREEN))
    assert ui.server.answered - before == ui.pipeline.house.read("predictions")["model"].to_pylist().count("fake") == 3 * 3
    assert ui.follow() == [], "the backfill made the boards itself"
