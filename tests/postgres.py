"""A PostgreSQL server of the tests' own: on loopback, on a free port, with a password, gone when the tests end."""

from __future__ import annotations

import itertools
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.apt import NotInstalled, found_or_installed
from tests.memory_folder import memory_folder

USER = "dtef"
START_TIMEOUT_S = 60


@dataclass
class Postgres:
    """A running server."""

    port: int
    password: str
    bin: Path
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_database(self) -> str:
        """The URL of a database that is empty."""
        name = f"test_{next(self._numbers)}"
        engine = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        log = str(self.folder / "server.log")
        self._ctl("start", "-w", "-t", str(START_TIMEOUT_S), "-l", log, "-o", options)

    def stop(self) -> None:
        """At once, as a crash would: connections break, what was committed stays."""
        self._ctl("stop", "-w", "-m", "immediate")

    def _ctl(self, *arguments: str) -> None:
        _run([str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), *arguments])


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server for the time of the block. Skips the test where there is none to be had."""
    # Not in pytest's folder: that one is closed to the user that the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="dtef-postgres-", dir=memory_folder()))
    try:
        server = Postgres(_free_port(), secrets.token_hex(8), found_or_installed(_binaries, "postgresql"), folder)
        _make_cluster(server)
        server.start()
    except NotInstalled as error:
        pytest.skip(f"without PostgreSQL: {error}")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"without PostgreSQL: {Path(error.cmd[0]).name} failed: {error.stderr.strip()[-500:]}")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _make_cluster(server: Postgres) -> None:
    password = server.folder / "password"
    password.write_text(server.password, encoding="ascii")
    if (user := _server_user()) is not None:
        account = pwd.getpwnam(user)
        for path in (server.folder, password):
            os.chown(path, account.pw_uid, account.pw_gid)
    access = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={password}"]
    _run([str(server.bin / "initdb"), "-D", str(server.folder / "data"), *access, "-E", "UTF8", "--locale=C", "--no-sync"])


def _run(command: list[str]) -> None:
    # To files: the server that pg_ctl leaves behind would hold a pipe open.
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            command, user=_server_user(), cwd="/", stdout=errors, stderr=errors, check=False, timeout=2 * START_TIMEOUT_S
        )
        errors.seek(0)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=errors.read())


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return next((name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}), None)


def _binaries() -> Path | None:
    """The folder of the newest server programs."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
