"""A Redis server of the tests' own: on loopback, on a free port, with a password, gone when the tests end."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.apt import NotInstalled, found_or_installed

START_TIMEOUT_S = 60.0


class NoRedis(Exception):
    """There is no server to be had here; the message says why."""


@dataclass
class Redis:
    """A running server, which keeps what it has over a restart, as docs/how-to/several-machines.md says."""

    url: str
    _command: list[str]
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _await(self.url, self._process)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)


@contextmanager
def running_redis() -> Iterator[Redis]:
    """A server for the time of the block. Raises NoRedis."""
    try:
        program = found_or_installed(lambda: shutil.which("redis-server"), "redis-server")
    except NotInstalled as error:
        raise NoRedis(str(error)) from None
    password = secrets.token_hex(8)
    with socket.socket() as probe, tempfile.TemporaryDirectory(prefix="dtef-redis-") as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        settings = Path(folder, "redis.conf")
        # In a file of its own: a command line is read by every user of the machine.
        lines = ["bind 127.0.0.1", f"port {port}", f"requirepass {password}", f"dir {folder}", 'save ""', "appendonly yes"]
        settings.write_text("\n".join([*lines, "appendfsync always", ""]), encoding="ascii")
        server = Redis(f"redis://:{password}@127.0.0.1:{port}/0", [program, str(settings)])
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError as error:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise NoRedis(f"redis-server did not answer within {START_TIMEOUT_S:.0f} s: {error}") from None
            time.sleep(0.05)
