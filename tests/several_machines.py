"""Several machines on loopback: PostgreSQL, Redis and an S3 server that they share, and processes with homes of their own.

Shared are the warehouse (S3), the response store and Dagster's storage (PostgreSQL), and Celery's broker (Redis). Every process has a folder of
its own for everything else, as on a machine of its own; the settings are those of deploy/celery/dagster.yaml, with shorter waits.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import dagster as dg
import yaml
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster_graphql.client.query import LAUNCH_PARTITION_BACKFILL_MUTATION
from dagster_graphql.test.utils import execute_dagster_graphql

from tests import s3_server
from tests.conftest import ROOT
from tests.postgres import running_postgres
from tests.redis_server import Redis, running_redis

BUCKET = "dtef"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
POLL_S = 1
WAITS = {"poll_interval_seconds": POLL_S, "free_slots_after_run_end_seconds": 1}


@dataclass
class Machines:
    """The processes, and what they share."""

    folder: Path
    environment: dict[str, str]
    broker: Redis
    s3_port: int
    gone_after_s: int
    max_runs: int
    patience_s: float = 300.0
    code_port: int = 0
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def home(self, name: str) -> Path:
        """DAGSTER_HOME of a machine, made where it is not there."""
        home = self.folder / name / "dagster"
        if not home.exists():
            home.mkdir(parents=True)
            settings = yaml.safe_load((ROOT / "deploy" / "celery" / "dagster.yaml").read_text(encoding="utf-8"))
            settings["run_monitoring"] |= WAITS
            settings["run_launcher"]["config"]["gone_after_seconds"] = self.gone_after_s
            settings["concurrency"]["runs"]["max_concurrent_runs"] = self.max_runs
            (home / "dagster.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        return home

    def of(self, name: str) -> dict[str, str]:
        """The environment of a machine."""
        return {**os.environ, **self.environment, "DAGSTER_HOME": str(self.home(name)), "PYTHONPATH": str(ROOT)}

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """A process on a machine of this name. What it says is in the file `NAME/log`."""
        environment = self.of(name)
        with (self.folder / name / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=self.folder / name, env=environment, stdout=log, stderr=log
            )
        self.processes[name] = process
        return process

    def start_all(self, *workers: str) -> None:
        """These workers, the code server and the daemon, until the workers are ready."""
        for name in workers:
            self.start_worker(name)
        self.start_code_server()
        self.start_daemon()
        self.await_workers(*workers)

    def start_code_server(self) -> None:
        self.code_port = _free_port()
        where = ["-h", "127.0.0.1", "-p", str(self.code_port)]
        self.start("code", "dagster", "api", "grpc", "-m", "assets.definitions", "--location-name", "dtef", *where)
        self.until(lambda: _answers(self.code_port), "the code server answers")

    def start_daemon(self) -> None:
        self.home("daemon")
        workspace = self.folder / "daemon" / "workspace.yaml"
        server = {"host": "127.0.0.1", "port": self.code_port, "location_name": "dtef"}
        workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}), encoding="utf-8")
        self.start("daemon", "dagster._daemon", "run", "-w", str(workspace))

    def start_worker(self, name: str) -> None:
        self.start(name, "celery", "--app", "assets.celery_runs", "worker", "--hostname", f"{name}@%h", "--loglevel", "info")

    def await_workers(self, *names: str) -> None:
        for name in names:
            self.until(lambda name=name: b" ready." in self.log(name), f"the worker {name} is ready")  # type: ignore[misc]

    def log(self, name: str) -> bytes:
        return (self.folder / name / "log").read_bytes()

    def until(self, reached: Callable[[], bool], what: str, pause_s: float = 0.2) -> None:
        deadline = time.monotonic() + self.patience_s
        while not reached():
            ended = {name: process.returncode for name, process in self.processes.items() if process.poll() not in (None, -9)}
            assert not ended, f"while waiting until {what}: {ended}\n" + "\n".join(
                self.log(name).decode(errors="replace")[-3000:] for name in ended
            )
            assert time.monotonic() < deadline, f"not within {self.patience_s:.0f} s: {what}"
            time.sleep(pause_s)

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's own, as from a machine that runs nothing."""
        os.environ |= {**self.environment, "DAGSTER_HOME": str(self.home("desk"))}
        with dg.DagsterInstance.get() as instance:
            yield instance

    def backfill(
        self, instance: dg.DagsterInstance, keys: Sequence[str], names: Sequence[str], config: Mapping[str, Any]
    ) -> str:
        """What *Launch backfill* does; its id."""
        params = {
            "assetSelection": [{"path": [name]} for name in names],
            "partitionNames": list(keys),
            "runConfigData": {"ops": {name: {"config": given} for name, given in config.items()}},
            "tags": [],
        }
        target = GrpcServerTarget(host="127.0.0.1", port=self.code_port, socket=None, location_name="dtef")
        with WorkspaceProcessContext(instance, target) as workspace:
            request = workspace.create_request_context()
            (answer,) = execute_dagster_graphql(
                request, LAUNCH_PARTITION_BACKFILL_MUTATION, {"backfillParams": params}
            ).data.values()
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def await_backfill(self, instance: dg.DagsterInstance, backfill: str) -> str:
        """Its status at its end."""

        def ended() -> bool:
            return self._backfill(instance, backfill).status in BULK_ACTION_TERMINAL_STATUSES

        self.until(ended, f"the backfill {backfill} ends")
        return str(self._backfill(instance, backfill).status.value)

    def runs(self, instance: dg.DagsterInstance, backfill: str) -> list[dg.DagsterRun]:
        """Oldest first."""
        return list(reversed(instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))))

    def worker_of(self, run: dg.DagsterRun) -> str | None:
        """The machine that took a run; None: it waits."""
        task = run.tags.get("dagster-celery/task_id", "-").encode()
        return next((name for name in self.processes if b"[" + task + b"] received" in self.log(name)), None)

    @contextmanager
    def stopping(self, name: str) -> Iterator[None]:
        """A process that was told to end, as by `systemctl stop`, for the time of the block; it has ended well after it."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            yield
            assert process.wait(self.patience_s) == 0
        finally:
            process.kill()

    def stop(self) -> None:
        """At once, all of them."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(30)

    def _backfill(self, instance: dg.DagsterInstance, backfill: str) -> Any:
        found = instance.get_backfill(backfill)
        assert found is not None
        return found


@contextmanager
def several_machines(folder: Path, *, gone_after_s: int = 5, max_runs: int = 3, **environment: str) -> Iterator[Machines]:
    """Servers that are shared, and no process yet. `environment`: of all processes. Raises NoPostgres, NoRedis."""
    with ExitStack() as servers:
        postgres = servers.enter_context(running_postgres())
        broker = servers.enter_context(running_redis())
        s3 = servers.enter_context(s3_server.running(folder / "requests.jsonl"))
        make_bucket(s3.port)
        shared = {
            **CREDENTIALS,
            "DAGSTER_POSTGRES_URL": postgres.new_database().replace("+psycopg:", "+psycopg2:"),
            "DTEF_RESPONSES": postgres.new_database(),
            "DTEF_BROKER": broker.url,
            "DTEF_WAREHOUSE": f"s3://{BUCKET}/warehouse?endpoint_override=127.0.0.1:{s3.port}&scheme=http",
            "DAGSTER_EVENT_BATCH_SIZE": "50",
            **environment,
        }
        machines = Machines(folder, shared, broker, s3.port, gone_after_s, max_runs)
        before = dict(os.environ)
        try:
            yield machines
        finally:
            machines.stop()
            os.environ.clear()
            os.environ.update(before)


def s3_client(port: int) -> Any:
    secret = CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name=CREDENTIALS["AWS_REGION"],
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=secret,
    )


def make_bucket(port: int) -> None:
    """A bucket that keeps the earlier versions of its files."""
    client = s3_client(port)
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
