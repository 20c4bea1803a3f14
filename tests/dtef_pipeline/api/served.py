"""The API on a port of loopback, in a thread of the test or as a process of its own, and its streams of events as clients read them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import httpx2
import uvicorn
from fastapi import FastAPI

from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.services import Services
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.made import ROLE_TOKENS, written_tokens
from tests.made.run_events import tell

PATIENCE_OF_TESTS_S = 60.0


class ServedApi(NamedTuple):
    """An application that answers."""

    address: str
    """`http://127.0.0.1:PORT`"""
    app: FastAPI


@contextmanager
def served(services: Services) -> Iterator[ServedApi]:
    """The application over these services for the time of the block."""
    app = make_app(services)
    config = uvicorn.Config(app, http="h11", host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE_OF_TESTS_S
    while not (server.started and server.servers):
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < end, "the server did not start in time"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield ServedApi(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_OF_TESTS_S)


OPERATOR: Mapping[str, str] = {"Authorization": f"Bearer {ROLE_TOKENS['operator']}"}
_PLAN = {"job": "games_pipeline", "keys": ["poker/kuhn"], "config": {"episodes": {}}, "snapshot": "spring"}


class ReadEvent(NamedTuple):
    """An event as it was read from a stream."""

    number: int
    kind: str
    data: Any


def asked_evaluation(store: EvaluationStore) -> str:
    """The queue id of a new evaluation, which has the event `queued`."""
    asked = [RunSpec("poker/kuhn", {"persona_id": "bold"}), RunSpec("poker/kuhn", {"persona_id": "cautious"})]
    return store.submit("games", {"persona_ids": ["bold", "cautious"]}, _PLAN, asked, "olga")[0].queue_id


def write_items(store: EvaluationStore, queue_id: str, count: int, first: int = 0, pause: float = 0.0) -> None:
    """Events as the stages of a run write them."""
    for number in range(first, first + count):
        tell(store, queue_id, "item", {"stage": "episodes", "answered": number, "n_planned": first + count})
        time.sleep(pause)


def finished_evaluation(store: EvaluationStore, events: int) -> str:
    """The queue id of an evaluation with so many events, of which the last is the terminal one."""
    queue_id = asked_evaluation(store)
    write_items(store, queue_id, events - 2)
    tell(store, queue_id, "completed", {})
    return queue_id


def events_path(queue_id: str) -> str:
    return f"/api/evaluations/queue/{queue_id}/events"


def read_events(lines: Iterable[str]) -> Iterator[ReadEvent]:
    """The events of a stream, each as soon as its last line has come; every one has a number, a kind and one line of data."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name and name != "retry":
            assert name not in fields, f"{name} twice in one event"
            fields[name] = value
        elif not line and "id" in fields:
            yield ReadEvent(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


def operator_client() -> httpx2.Client:
    """A client that any number of threads may use."""
    return httpx2.Client(headers=OPERATOR, timeout=PATIENCE_OF_TESTS_S, limits=httpx2.Limits(max_connections=None))


def follow(http: httpx2.Client, address: str, queue_id: str, told: list[ReadEvent], after: int | None = None) -> None:
    """Add to `told` what a stream tells until it ends. `after`: number of the last event that is known already."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    with http.stream("GET", address + events_path(queue_id), headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        for event in read_events(answer.iter_lines()):
            told.append(event)


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE_OF_TESTS_S
    while not holds():
        assert time.monotonic() < end, f"still waiting for {what}"
        time.sleep(0.01)


PATIENCE_OF_KILLS_S = 60.0
AS_ADMIN = {"Authorization": f"Bearer {ROLE_TOKENS['admin']}"}


_API = """
from dtef_pipeline.cli import serve_api
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
