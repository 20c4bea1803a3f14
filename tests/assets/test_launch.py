"""Runs whose command was killed are ended by the next command; runs of commands that live, or that run on another machine, are not."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import dagster as dg
import duckdb
import pytest

from assets import launch
from assets.launch import close_abandoned_runs, materialize
from assets.stage.partitions import PROCESS_TAG, PartitionRun
from assets.stage.resources import Store
from assets.survey.rounds import ROUND_SEGMENT
from dtef_pipeline.errors import ConfigError, Interrupted
from resources.responses.processes import Process


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture(scope="module")
def ended() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def status_after(instance: dg.DagsterInstance, tag: str | None) -> dg.DagsterRunStatus:
    """What the next command makes of a run that has begun, and of whose process the tag tells."""
    tags = {} if tag is None else {PROCESS_TAG: tag}
    run = dg.DagsterRun("job", status=dg.DagsterRunStatus.STARTED, tags=tags)
    instance.add_run(run)
    close_abandoned_runs(instance)
    found = instance.get_run_by_id(run.run_id)
    assert found
    return found.status


def tag(process: Process) -> str:
    return json.dumps(process._asdict())


def test_a_run_of_a_killed_command_is_ended(instance: dg.DagsterInstance, ended: int) -> None:
    assert status_after(instance, tag(Process.this()._replace(pid=ended))) == dg.DagsterRunStatus.FAILURE


@pytest.mark.skipif(Process.this().started is None, reason="this machine does not say when a process was started")
def test_a_process_number_that_was_given_to_another_program_keeps_no_dead_run_alive(instance: dg.DagsterInstance) -> None:
    """Only host name and number were looked at: after a restart of the machine a dead run could look alive for good."""
    before = Process.this()._replace(started="1")
    assert status_after(instance, tag(before)) == dg.DagsterRunStatus.FAILURE


def test_a_run_in_another_container_of_the_same_host_name_is_left_alone(
    instance: dg.DagsterInstance, ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process has a number that means nothing here, and was taken for dead: a living run was ended."""

    @dg.asset
    def nothing() -> None: ...

    monkeypatch.setattr("assets.launch.defs", dg.Definitions([nothing]))
    with monkeypatch.context() as there:
        there.setattr(
            "resources.responses.processes._identify_machine", lambda: f"{socket.gethostname()} the-same-boot pid:[1]"
        )
        there.setattr(os, "getpid", lambda: ended)
        begun: list[str] = []
        (run_id,) = materialize(instance, ["nothing"], [], {}, on_step=begun.append).run_ids
        assert begun == ["nothing"], "who waits is told what is being made"
    run = instance.get_run_by_id(run_id)
    assert run
    assert status_after(instance, run.tags[PROCESS_TAG]) == dg.DagsterRunStatus.STARTED


def test_a_command_s_run_belongs_to_the_code_location_and_is_never_started_again_by_the_daemon(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of commands belonged to none: the first page of the UI was empty after a demo, and they could not be executed again there."""

    @dg.asset
    def nothing() -> None: ...

    monkeypatch.setattr(launch, "defs", dg.Definitions([nothing]))
    (run_id,) = materialize(instance, ["nothing"], [], {}).run_ids
    run = instance.get_run_by_id(run_id)
    assert run
    assert run.remote_job_origin
    assert run.remote_job_origin.repository_origin.get_label() == "__repository__@dtef"
    assert run.remote_job_origin.job_name == run.job_name
    assert run.tags["dagster/max_retries"] == "0"


def test_what_the_ui_executes_again_is_none_of_a_commands_business(instance: dg.DagsterInstance, ended: int) -> None:
    """The tags of a run are copied to its re-execution, which would have been ended as the work of a dead process."""
    of_the_dead = {PROCESS_TAG: tag(Process.this()._replace(pid=ended))}
    first = dg.DagsterRun("job", status=dg.DagsterRunStatus.FAILURE, tags=of_the_dead)
    again = dg.DagsterRun(
        "job", status=dg.DagsterRunStatus.STARTED, tags=of_the_dead, parent_run_id=first.run_id, root_run_id=first.run_id
    )
    for run in (first, again):
        instance.add_run(run)
    close_abandoned_runs(instance)
    found = instance.get_run_by_id(again.run_id)
    assert found
    assert found.status == dg.DagsterRunStatus.STARTED


@pytest.mark.parametrize("said", ["INTERRUPT Error: Interrupted!", "Query interrupted"])
def test_an_interrupt_that_duckdb_turned_into_its_own_error_is_an_interrupt(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    @dg.asset
    def reliability() -> None:
        if said == "Query interrupted":
            raise RuntimeError(said)
        raise duckdb.InterruptException(said)

    monkeypatch.setattr(launch, "defs", dg.Definitions(assets=[reliability], executor=dg.in_process_executor))
    with pytest.raises(Interrupted):
        materialize(instance, ["reliability"], [], {})


def test_partitions_that_failed_are_counted_over_all_runs_of_a_command(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each range was a run of its own, and the message was "1 of 1 partitions failed" where two were asked for."""

    @dg.asset(partitions_def=ROUND_SEGMENT, output_required=False)
    def blueprints(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        run = PartitionRun(context, Store())
        for key in run.keys:
            with run.attempt(key):
                if key == "T1/c":
                    raise ConfigError("no such thing") from KeyError("inner")
                run.done(key, {})
        return run.result()

    assert ROUND_SEGMENT.name
    instance.add_dynamic_partitions(ROUND_SEGMENT.name, ["T1/a", "T1/b", "T1/c"])
    monkeypatch.setattr(launch, "defs", dg.Definitions(assets=[blueprints], executor=dg.in_process_executor))
    outcome = materialize(instance, ["blueprints"], ["T1/a", "T1/c"], {})
    assert len(outcome.run_ids) == 1
    assert outcome.failures == ("blueprint: 1 of 2 partitions failed, the others are done: T1/c (no such thing)",)
    (failure,) = materialize(instance, ["blueprints"], ["T1/c"], {}).failures
    assert failure == "blueprint: 1 of 1 partition failed: T1/c (no such thing)"


def test_a_stage_that_fails_as_a_whole_is_reported_in_the_projects_words_or_by_kind_and_run(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The innermost cause was told, such as a dump of pydantic's, in place of the message that names file and line."""

    @dg.asset
    def costs() -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ConfigError("p.yaml:2: rouds: unknown key") from error

    @dg.asset
    def report() -> None:
        raise KeyError("no one expected this")

    monkeypatch.setattr(launch, "defs", dg.Definitions(assets=[costs, report], executor=dg.in_process_executor))
    outcome = materialize(instance, ["costs", "report"], [], {})
    (run_id,) = outcome.run_ids
    assert sorted(outcome.failures) == [
        "costs: p.yaml:2: rouds: unknown key",
        f"report: KeyError: 'no one expected this'; details are in the log of run {run_id} (`dtef ui`)",
    ]
