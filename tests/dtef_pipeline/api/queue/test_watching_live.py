"""Many watch at once over real connections: nobody misses an event or gets one twice, and who goes leaves nothing behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.queue import event_stream, queue_routes
from dtef_pipeline.api.queue.event_stream import Watchers, find_resume_point
from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import StoreError, UnknownEvaluation
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.api.made import client_in, evaluations_of, services_in
from tests.dtef_pipeline.api.served import (
    PATIENCE_OF_TESTS_S,
    ReadEvent,
    ServedApi,
    asked_evaluation,
    events_path,
    finished_evaluation,
    follow,
    operator_client,
    read_events,
    served,
    until,
    write_items,
)
from tests.made.run_events import RUN_LOG, tell
from tests.made.shared_cases import cases

SOON_S = 10.0
"""Far more than a change takes to be told, and far less than the longest wait."""


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return services_in(tmp_path)


@pytest.fixture
def api(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedApi]:
    for module in (event_stream, queue_routes):
        monkeypatch.setattr(module, "EVENTS_EVERY_S", 0.02)
    with served(services) as found:
        yield found


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with operator_client() as found:
        yield found


@pytest.fixture
def writer(services: Services) -> EvaluationStore:
    return services.evaluations


def watchers_in(api: ServedApi) -> Watchers:
    found: Watchers = api.app.state.watchers
    return found


def test_two_who_watch_get_the_same_events_without_a_gap(http: httpx2.Client, api: ServedApi, writer: EvaluationStore) -> None:
    queue_id = asked_evaluation(writer)
    told: list[list[ReadEvent]] = [[], [], []]
    with ThreadPoolExecutor(4) as pool:
        following = [pool.submit(follow, http, api.address, queue_id, one) for one in told[:2]]
        until(lambda: watchers_in(api).number == 2, "both to watch")
        write_items(writer, queue_id, 100)
        # One who comes back in the middle.
        following.append(pool.submit(follow, http, api.address, queue_id, told[2], 50))
        write_items(writer, queue_id, 103, first=100, pause=0.001)
        tell(writer, queue_id, "completed", {})
        for one in following:
            one.result(PATIENCE_OF_TESTS_S)
    assert [event.number for event in told[0]] == list(range(1, 206))
    assert told[0] == told[1]
    assert told[2] == told[0][50:]
    assert [event.kind for event in told[0]] == ["queued", *["item"] * 203, "completed"]


def test_those_who_come_and_go_leave_nothing_and_too_many_are_sent_away(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = api.address + events_path(asked_evaluation(writer))
    here = address.removesuffix("/events")
    with pytest.raises(httpx2.ReadTimeout):
        http.get(f"{here}?wait=30", headers={"If-None-Match": http.get(here).headers["etag"]}, timeout=0.3)
    monkeypatch.setattr(event_stream, "MAX_WATCHERS", 1)
    until(lambda: watchers_in(api).number == 0, "the long poll to end")
    with http.stream("GET", address):
        until(lambda: watchers_in(api).number == 1, "the first to watch")
        refused = http.get(address)
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
    assert int(refused.headers["retry-after"]) > 0
    until(lambda: watchers_in(api).number == 0, "the place to be free")


def long_poll(
    http: httpx2.Client, api: ServedApi, queue_id: str, change: Callable[[], object]
) -> tuple[httpx2.Response, httpx2.Response]:
    """The answers before and after a change that comes while a client waits for it."""
    path = f"{api.address}/api/evaluations/queue/{queue_id}"
    first = http.get(path)
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": first.headers["etag"]})
        until(lambda: watchers_in(api).number == 1, "it to wait")
        change()
        answer = waiting.result(PATIENCE_OF_TESTS_S)
        assert time.monotonic() - began < SOON_S
    return first, answer


def test_a_long_poll_is_answered_soon_after_any_change(http: httpx2.Client, api: ServedApi, writer: EvaluationStore) -> None:
    before, queue_id = asked_evaluation(writer), asked_evaluation(writer)
    # It waited to its end, though its place had changed.
    first, answer = long_poll(http, api, queue_id, lambda: tell(writer, before, "started", {}))
    assert [one.json()["waiting_before"] for one in (first, answer)] == [1, 0]
    path = f"{api.address}/api/evaluations/queue/{queue_id}/cancel"
    _, answer = long_poll(http, api, queue_id, lambda: http.post(path))
    assert answer.json()["cancelled_by"] == "operator"
    _, answer = long_poll(http, api, queue_id, lambda: tell(writer, queue_id, "started", {}))
    assert (answer.status_code, answer.json()["status"]) == (200, "running")


def test_a_long_poll_learns_what_is_wrong(
    http: httpx2.Client, api: ServedApi, tmp_path: Path, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is away, and a token that was taken out."""
    queue_id = asked_evaluation(writer)

    def away(*_: object) -> None:
        raise StoreError("the database is away")

    with monkeypatch.context() as patched:
        _, answer = long_poll(http, api, queue_id, lambda: patched.setattr(writer, "evaluation", away))
    assert (answer.status_code, "try again" in answer.json()["detail"]) == (503, True)

    def take_out() -> None:
        (tmp_path / "tokens.yaml").write_text("tokens: []\n", encoding="utf-8")
        tell(writer, queue_id, "started", {})

    _, answer = long_poll(http, api, queue_id, take_out)
    assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer")


def test_a_database_that_is_away_for_a_while_loses_no_event(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_AWAY_S", 0.05)
    away, asked_in_vain, there = threading.Event(), list[int](), writer.events

    def read(*given: object) -> object:
        if away.is_set():
            asked_in_vain.append(1)
            raise StoreError("the database is away")
        return there(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "events", read)
    queue_id = asked_evaluation(writer)
    told: list[ReadEvent] = []
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, http, api.address, queue_id, told)
        until(lambda: told, "the first event")
        away.set()
        write_items(writer, queue_id, 20)
        until(lambda: len(asked_in_vain) > 3, "the database to be missed")
        away.clear()
        tell(writer, queue_id, "completed", {})
        following.result(PATIENCE_OF_TESTS_S)
    assert [event.number for event in told] == list(range(1, 23))


LAST_EVENT_IDS = {
    None: [1, 2, 3, 4, 5],
    "0": [1, 2, 3, 4, 5],
    "1": [2, 3, 4, 5],
    "4": [5],
    "5": 204,
    "6": [1, 2, 3, 4, 5],
    "-1": [1, 2, 3, 4, 5],
    "3.0": [1, 2, 3, 4, 5],
    "": [1, 2, 3, 4, 5],
    "9" * 400: [1, 2, 3, 4, 5],
    "2, 3": [1, 2, 3, 4, 5],
}


def sent_after(client: TestClient, queue_id: str, last_event_id: str | None) -> list[int] | int:
    """The numbers of the events that are sent; or the status, where it is not 200."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    answer = client.get(events_path(queue_id), headers=headers)
    if answer.status_code == 200:
        return [event.number for event in read_events(answer.text.split("\n"))]
    assert answer.content == b""
    return answer.status_code


def test_a_finished_evaluation_is_reported_from_where_the_client_left_off(tmp_path: Path) -> None:
    with client_in(tmp_path, "operator") as client:
        queue_id = finished_evaluation(evaluations_of(client), 5)
        assert {header: sent_after(client, queue_id, header) for header in LAST_EVENT_IDS} == LAST_EVENT_IDS


def test_the_published_cases_of_resuming(tmp_path: Path) -> None:
    with client_in(tmp_path, "operator") as client:
        for case in cases("votes", "sse_resume"):
            given = case["in"]
            assert given["finished"], "a case of another kind"
            queue_id = finished_evaluation(evaluations_of(client), given["events"])
            assert sent_after(client, queue_id, given["last_event_id"]) == case["out"], case["id"]


def test_who_has_all_events_of_an_unfinished_evaluation_waits_for_the_next(tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "responses.sqlite", RUN_LOG) as store:
        queue_id = asked_evaluation(store)
        assert find_resume_point(store, queue_id, "1") == 1
        assert find_resume_point(store, queue_id, "2") == 0
        with pytest.raises(UnknownEvaluation):
            find_resume_point(store, "0" * 32, "1")


def test_a_stream_is_exactly_these_bytes(tmp_path: Path) -> None:
    with client_in(tmp_path, "operator") as client:
        store = evaluations_of(client)
        queue_id = asked_evaluation(store)
        tell(store, queue_id, "failed", {"reason": "two\nlines \u2028 and ü"})
        answer = client.get(events_path(queue_id))
    assert answer.content.decode() == (
        "retry: 3000\n\n"
        'id: 1\nevent: queued\ndata: {"family":"games","runs":2}\n\n'
        'id: 2\nevent: failed\ndata: {"reason":"two\\nlines \u2028 and ü"}\n\n'
    )
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


def test_a_comment_comes_while_nothing_happens_and_a_token_taken_out_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "PING_S", 0.05)
    with client_in(tmp_path, "operator") as client:
        store = evaluations_of(client)
        queue_id = asked_evaluation(store)
        with client.stream("GET", events_path(queue_id), headers={"Last-Event-ID": "1"}) as answer:
            lines = answer.iter_lines()
            assert [next(lines) for _ in range(4)] == ["retry: 3000", "", ": ping", ""]
            (tmp_path / "tokens.yaml").write_text("tokens: []\n", encoding="utf-8")
            tell(store, queue_id, "item", {})
            assert list(read_events(line for line in lines if line != ": ping")) == []
