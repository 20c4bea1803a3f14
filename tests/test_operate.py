"""The page on operating a server names commands, options and files that exist, and its deployment works."""

from __future__ import annotations

import configparser
import json
import logging
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._daemon.monitoring.run_monitoring import monitor_started_run
from dagster._grpc.client import DagsterGrpcClient

import assets.run_launcher
from assets.run_launcher import WatchedRunLauncher
from dtef_pipeline.cli import main
from resources.responses.processes import is_running_since
from tests.conftest import ROOT
from tests.postgres import running_postgres
from tests.waiting import wait_until

DEPLOY = ROOT / "deploy"
PAGES = {"docs/how-to/operate.md": 10, "docs/how-to/several-machines.md": 3}
"""With how many commands of ours there are at least."""
UNITS = sorted(DEPLOY.rglob("*.service"))


def cli(program: str) -> click.Command | None:
    """The command line of a program of ours or Dagster's; None for those of others."""
    if program == "dtef":
        return main
    if program == "dagster":
        from dagster._cli import create_dagster_cli

        return create_dagster_cli()
    if program == "dagster-daemon":
        from dagster._daemon.cli import create_dagster_daemon_cli

        return create_dagster_daemon_cli()
    if program == "dagster-webserver":
        from dagster_webserver.cli import create_dagster_webserver_cli

        return create_dagster_webserver_cli()
    if program == "dtef-webserver":
        from assets.web_server import command

        return command()
    return None


def unknown(words: list[str]) -> str | None:
    """What of a command line its program does not have."""
    command = cli(words[0])
    if command is None:
        return None
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        below = command.get_command(click.Context(command), name)
        if below is None:
            return name
        command = below
    options = {option for param in command.params for option in [*param.opts, *param.secondary_opts]} | {
        "-h",
        "--help",
        "--version",
    }
    return next((word for word in rest if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in options), None)


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def words_of(line: str) -> list[str]:
    """A command without what it is given of the environment, without its folder, and without another one that runs it in a container."""
    words = shlex.split(line.partition(" -- ")[2] or line)
    while len(words) > 1 and re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    return [Path(words[0]).name, *words[1:]]


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_page_and_their_options_exist(page: str) -> None:
    ours = [words for line in commands_of(page) if cli((words := words_of(line))[0])]
    assert len(ours) >= PAGES[page]
    assert [(words, name) for words in ours if (name := unknown(words))] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_services_start_programs_that_exist_and_write_for_their_user_alone(unit: Path) -> None:
    """Votes, and the salt that hides whose response is which, were readable for every user of the machine."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit, encoding="utf-8")
    program, *rest = shlex.split(parser["Service"]["ExecStart"])
    assert unknown([Path(program).name, *rest]) is None
    service = parser["Service"]
    assert (service["EnvironmentFile"], service["User"], service["UMask"]) == ("/etc/dtef/dtef.env", "dtef", "0077")


@pytest.fixture
def home(state: Path) -> Path:
    folder = state / "dagster"
    folder.mkdir()
    return folder


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Of the template for one machine, as `dtef` makes it."""
    shutil.copyfile(ROOT / "dagster.yaml", home / "dagster.yaml")
    with dg.DagsterInstance.get() as made:
        yield made


def is_as_operated(instance: dg.DagsterInstance) -> None:
    assert isinstance(instance.run_launcher, WatchedRunLauncher)
    assert instance.run_monitoring_enabled
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 3
    assert not instance.run_retries_retry_on_asset_or_op_failure
    assert not instance.telemetry_enabled
    assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 60


class TestProduction:
    def test_the_template_is_an_instance_on_postgresql(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shutil.copyfile(DEPLOY / "dagster.yaml", home / "dagster.yaml")
        with running_postgres() as server:
            url = server.new_database().replace("+psycopg:", "+psycopg2:")
            monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
            with dg.DagsterInstance.get() as made:
                is_as_operated(made)
                assert made.event_log_storage._engine.pool.size() == 1
                made.event_log_storage.set_concurrency_slots("openai", 1)
                made.add_dynamic_partitions("round_segment", ["T1/country:kenya"])
            with dg.DagsterInstance.get() as again:
                assert again.get_dynamic_partitions("round_segment") == ["T1/country:kenya"]
                assert again.event_log_storage.get_concurrency_keys() == {"openai"}


class TestKilledWorker:
    """Dagster's own launcher leaves a run `STARTED` for good when its worker and its code server died together."""

    def started(self, instance: dg.DagsterInstance, pid: int | None, host: str = "localhost") -> dg.DagsterRun:
        tags = {GRPC_INFO_TAG: json.dumps({"host": host, "socket": "/gone"})}
        run = instance.run_storage.add_run(
            dg.DagsterRun(job_name="survey_nightly", status=dg.DagsterRunStatus.STARTED, tags=tags)
        )
        if pid is not None:
            instance.report_engine_event(f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid))
        return run

    def looked_after(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun:
        record = instance.get_run_record_by_id(run.run_id)
        assert record is not None
        monitor_started_run(instance, None, record, logging.getLogger("test"))  # type: ignore[arg-type]
        found = instance.get_run_by_id(run.run_id)
        assert found is not None
        return found

    def test_it_is_noticed_and_its_run_marked_for_another_try(self, instance: dg.DagsterInstance) -> None:
        is_as_operated(instance)
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        try:
            run = self.started(instance, worker.pid)
            assert self.looked_after(instance, run).status == dg.DagsterRunStatus.STARTED
        finally:
            worker.kill()
        # Not collected by its parent yet: a zombie is dead.
        assert wait_until(lambda: not is_running_since(worker.pid, time.time()), 20)
        found = self.looked_after(instance, run)
        assert found.status == dg.DagsterRunStatus.FAILURE
        assert found.tags["dagster/will_retry"] == "true"
        worker.wait()
        said = [entry.message for entry in instance.all_logs(run.run_id)]
        assert any(f"process {worker.pid} no longer runs on this machine" in message for message in said), said

    def test_nothing_is_tried_again_while_its_code_server_is_away_or_just_back(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The daemon gives a retry up for good when it cannot reach the code server."""
        run = self.started(instance, 2**22 + 1)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            server = {"host": "127.0.0.1", "port": closed.getsockname()[1]}
        instance.add_run_tags(run.run_id, {GRPC_INFO_TAG: json.dumps(server)})
        assert self.looked_after(instance, run).status == dg.DagsterRunStatus.STARTED
        monkeypatch.setattr(DagsterGrpcClient, "ping", lambda *_: "")
        assert self.looked_after(instance, run).status == dg.DagsterRunStatus.STARTED
        monkeypatch.setattr(assets.run_launcher, "SETTLED_S", 0.0)
        assert self.looked_after(instance, run).status == dg.DagsterRunStatus.FAILURE

    @pytest.mark.parametrize(
        ("pid", "host"), [(None, "localhost"), (2**22 + 1, "code.example.org")], ids=["not said", "elsewhere"]
    )
    def test_of_whom_nothing_is_known_is_left_alone(self, instance: dg.DagsterInstance, pid: int | None, host: str) -> None:
        run = self.started(instance, pid, host)
        assert instance.run_launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
        assert self.looked_after(instance, run).status == dg.DagsterRunStatus.STARTED
