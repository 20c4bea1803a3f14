"""`dtef api` as a process of its own, as an operator starts and kills it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

import httpx2

from tests.dtef_pipeline.api.followed import read_events
from tests.dtef_pipeline.api.made import ROLE_TOKENS, written_tokens

PATIENCE_OF_KILLS_S = 60.0
AS_ADMIN = {"Authorization": f"Bearer {ROLE_TOKENS['admin']}"}


_API = """
from dtef_pipeline.cli.serving import serve_api
from dtef_pipeline.cli import main
serve_api.load_slow_packages = lambda settings: None
main()
"""
"""`dtef` that does not load what submissions need: it takes several seconds of the processor."""


class StartedApi:
    """A process, from when it was started."""

    def __init__(self, folder: Path, responses: str, port: int = 0) -> None:
        """`responses`: the URL of its store. `port`: 0: a free one."""
        places = {"DTEF_WAREHOUSE": folder / "warehouse", "DAGSTER_HOME": folder / "dagster", "DTEF_RESPONSES": responses}
        tokens = folder / "tokens.yaml"
        environment = {**os.environ, **{name: str(place) for name, place in places.items()}, "DTEF_API_TOKENS": str(tokens)}
        if not tokens.exists():
            written_tokens(folder)
        command = [sys.executable, "-c", _API, "api", "--port", str(port)]
        with (folder / "api.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.address = ""

    def await_address(self) -> str:
        """Wait until it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("API on http://"), line
        self.address = line.split()[2].rstrip(":")
        return self.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def end(self, how: signal.Signals, within: float = PATIENCE_OF_KILLS_S) -> int:
        """The exit code after a signal. Raises TimeoutExpired."""
        self.process.send_signal(how)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(within)


@contextmanager
def started(folder: Path, responses: str, port: int = 0) -> Iterator[StartedApi]:
    """A process that serves; killed at the end, if it was not before."""
    api = StartedApi(folder, responses, port)
    try:
        api.await_address()
        yield api
    finally:
        if api.process.poll() is None:
            api.end(signal.SIGKILL)


class Subscriber:
    """Reads a stream of events in a thread, and takes it up again where it broke, as a browser does."""

    def __init__(self, address: str, queue_id: str, headers: Mapping[str, str] = AS_ADMIN) -> None:
        self.url = f"{address}/api/evaluations/queue/{queue_id}/events"
        self.headers = dict(headers)
        self.seen: list[tuple[int, str]] = []
        """(number, kind) of each event, as it came."""
        self.breaks = 0
        self.ended = threading.Event()
        self.left = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with httpx2.Client(headers=self.headers, timeout=5) as client:
            while not self.left and not self._has_read_all(client):
                self.breaks += 1
                sleep(0.05)
        self.ended.set()

    def _has_read_all(self, client: httpx2.Client) -> bool:
        last = {"Last-Event-ID": str(self.seen[-1][0])} if self.seen else {}
        with suppress(httpx2.HTTPError), client.stream("GET", self.url, headers=last) as answer:
            if answer.status_code == 204:
                return True
            for event in read_events(answer.iter_lines()):
                self.seen.append((event.number, event.kind))
        return False
