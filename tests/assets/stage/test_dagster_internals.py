"""What a new release of Dagster has changed of the names that are no part of its public interface."""

import importlib
import inspect
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from packaging.requirements import Requirement

from assets.run_launcher import WatchedRunLauncher
from assets.stage import dagster_internals as internals
from resources import dagster_storage
from tests.conftest import ROOT

SIGNATURES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "claims": (internals.InstanceConcurrencyContext, ["instance", "dagster_run"]),
    "claim": (internals.InstanceConcurrencyContext.claim, ["self", "concurrency_key", "step_key"]),
    "free_step": (internals.InstanceConcurrencyContext.free_step, ["self", "step_key"]),
    "health": (internals.CheckRunHealthResult, ["status", "msg"]),
    "batch": (internals.DagsterEventBatchMetadata, ["id", "is_end"]),
    "step_failure_event": (dg.DagsterEvent.step_failure_event, ["step_context", "step_failure_data", "message"]),
    "asset_materialization": (dg.DagsterEvent.asset_materialization, ["step_context", "materialization", "batch_metadata"]),
    "launcher": (dg.DefaultRunLauncher, ["inst_data"]),
    "event log": (dagster_storage.SqliteEventLogStorage, ["base_dir", "inst_data"]),
    "event log, connect": (dagster_storage.SqliteEventLogStorage._connect, ["self", "shard"]),
    "workspace": (internals.location_origins_from_yaml_paths, ["yaml_paths"]),
    "ticks": (
        dg.DagsterInstance.get_ticks,
        ["self", "origin_id", "selector_id", "before", "after", "limit", "statuses"],
    ),
    "runs": (dagster_storage.SqliteRunStorage, ["conn_string", "inst_data"]),
    "storage": (dagster_storage.DagsterSqliteStorage, ["base_dir", "inst_data"]),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_private_functions_take_what_they_are_given_here(name: str) -> None:
    function, parameters = SIGNATURES[name]
    assert list(inspect.signature(function).parameters)[: len(parameters)] == parameters


def test_of_what_is_written_to_stderr_only_dagsters_own_lines_are_kept_back(capsys: pytest.CaptureFixture[str]) -> None:
    """On a full disk they stood before the one line that says so, with a statement and an address to look up."""
    source = "".join(
        inspect.getsource(importlib.import_module(f"dagster._core.instance.{name}"))
        for name in ("types", "methods.event_methods")
    )
    assert [line for line in internals.OWN_LINES if line not in source] == []
    with internals.filter_storage_messages():
        sys.stderr.write(f"{internals.OWN_LINES[0]}(sqlite3.OperationalError) disk I/O error\n[SQL: PRAGMA]\n")
        sys.stderr.write("ours\n")
        assert not sys.stderr.isatty()
    assert capsys.readouterr().err == "ours\n"


def test_the_launcher_and_the_storages_have_the_members_that_are_used() -> None:
    assert {status.name for status in internals.WorkerStatus} >= {"RUNNING", "NOT_FOUND"}
    assert isinstance(inspect.getattr_static(WatchedRunLauncher, "_instance"), property)
    log = dagster_storage.SqliteEventLogStorage
    assert all(hasattr(log, name) for name in ("_initdb", "conn_string_for_shard"))


def test_a_step_knows_the_versions_of_its_inputs_and_logs_a_failure_that_does_not_end_it(tmp_path: Path) -> None:
    seen: list[bool] = []

    @dg.asset
    def made(context: dg.AssetExecutionContext) -> None:
        seen.append(callable(internals.get_step(context).maybe_fetch_and_get_input_asset_version_info))
        internals.log_step_failure(context, "some of it", {})

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        result = dg.materialize([made], instance=instance)
        logged = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        assert internals.read_sensor_state(instance, "none") == internals.SensorState()
    assert seen == [True]
    assert result.success
    assert [entry.get_dagster_event().message for entry in logged] == ["some of it"]


def test_a_run_is_made_by_the_method_that_takes_a_code_location() -> None:
    assert "remote_job_origin" in inspect.signature(dg.DagsterInstance.create_run_for_job).parameters


def test_an_address_where_nothing_listens_does_not_answer() -> None:
    assert not internals.is_server_up("127.0.0.1", 1)


def test_the_installed_dagster_is_within_the_bounds_and_they_end_at_the_next_minor_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["postgres"]]
    bounds = {one.name: one.specifier for one in map(Requirement, lines) if one.name.startswith("dagster")}
    assert set(bounds) == {"dagster", "dagster-webserver", "dagster-postgres"}
    assert str(bounds["dagster"]) == str(bounds["dagster-webserver"]) == "<1.14,>=1.13"
    locked = dict(
        line.partition(" ")[0].split("==")
        for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        if line.startswith("dagster") and "==" in line
    )
    assert all(locked[name] in bound for name, bound in bounds.items())
    assert version("dagster") in bounds["dagster"]
