"""An evaluation whose events a test writes, and its stream as a client reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import httpx2

from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.made import ROLE_TOKENS
from tests.dtef_pipeline.api.served import PATIENCE_OF_TESTS_S
from tests.made.run_events import tell

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
