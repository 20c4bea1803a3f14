"""Many watch at once over real connections: nobody misses an event or gets one twice, and who goes leaves nothing behind."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from dtef_pipeline.api import queue_routes
from dtef_pipeline.api import watch as watching
from dtef_pipeline.api.queue_routes import evaluation_body
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.watch import Watch
from dtef_pipeline.errors import StoreError
from resources.evaluations import EvaluationStore
from tests.dtef_pipeline.api.followed import (
    ReadEvent,
    asked_evaluation,
    events_path,
    follow,
    operator_client,
    until,
    write_items,
)
from tests.dtef_pipeline.api.made import services_in
from tests.dtef_pipeline.api.served import PATIENCE_OF_TESTS_S, ServedApi, served
from tests.dtef_pipeline.api.serving_process import serving_process

SOON_S = 10.0
"""Far more than a change takes to be told, and far less than the longest wait."""


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return services_in(tmp_path)


@pytest.fixture
def api(services: Services) -> Iterator[ServedApi]:
    with served(services) as found:
        yield found


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with operator_client() as found:
        yield found


@pytest.fixture
def writer(services: Services, tmp_path: Path) -> Iterator[EvaluationStore]:
    """A store that the server knows nothing of, as in another process."""
    with EvaluationStore(tmp_path / "responses.sqlite") as found:
        yield found


def watch_in(api: ServedApi) -> Watch:
    found: Watch = api.app.state.watch
    return found


def tasks_in(watch: Watch) -> list[str]:
    """The tasks on the event loop of the server, by the functions that they run: its own, and those of who watches."""
    assert watch._loop is not None
    return sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks(watch._loop))  # type: ignore[union-attr]


def test_two_who_watch_get_the_same_events_without_a_gap(http: httpx2.Client, api: ServedApi, writer: EvaluationStore) -> None:
    queue_id = asked_evaluation(writer)
    told: list[list[ReadEvent]] = [[], [], []]
    with ThreadPoolExecutor(4) as pool:
        following = [pool.submit(follow, http, api.address, queue_id, one) for one in told[:2]]
        until(lambda: watch_in(api).watchers == 2, "both to watch")
        write_items(writer, queue_id, 100)
        # One who comes back in the middle.
        following.append(pool.submit(follow, http, api.address, queue_id, told[2], 50))
        write_items(writer, queue_id, 103, first=100, pause=0.001)
        writer.append(queue_id, "completed", {}, "end")
        for one in following:
            one.result(PATIENCE_OF_TESTS_S)
    assert [event.number for event in told[0]] == list(range(1, 206))
    assert told[0] == told[1]
    assert told[2] == told[0][50:]
    assert [event.kind for event in told[0]] == ["queued", *["item"] * 203, "completed"]
    assert [event.data["answered"] for event in told[0][1:-1]] == list(range(203))


def test_a_hundred_who_come_and_go_leave_nothing(http: httpx2.Client, api: ServedApi, writer: EvaluationStore) -> None:
    queues = [asked_evaluation(writer) for _ in range(3)]
    watch = watch_in(api)

    def come_and_go(number: int) -> None:
        path = events_path(queues[number % 3])
        if number % 4 == 3:
            here = api.address + path.removesuffix("/events")
            headers = {"If-None-Match": http.get(here).headers["etag"]}
            with pytest.raises(httpx2.ReadTimeout):
                http.get(f"{here}?wait=30", headers=headers, timeout=0.3)
            return
        with http.stream("GET", api.address + path) as answer:
            if number % 2:
                next(answer.iter_lines())

    come_and_go(0)
    until(lambda: watch.watchers == 0, "the first to go")
    until(lambda: "Watch._look_on" not in tasks_in(watch), "nobody to look on")
    before = tasks_in(watch)
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(come_and_go, range(100)))
    until(lambda: (watch.watchers, watch.watched) == (0, {}), "all places to be free")
    until(lambda: tasks_in(watch) == before, "all tasks to end")
    assert len(before) < 10, before


def test_a_long_poll_is_answered_soon_after_a_change_elsewhere(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore
) -> None:
    queue_id = asked_evaluation(writer)
    path = f"{api.address}/api/evaluations/queue/{queue_id}"
    tag = http.get(path).headers["etag"]
    with ThreadPoolExecutor(2) as pool:
        began = time.monotonic()
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag})
        until(lambda: watch_in(api).watchers == 1, "it to wait")
        writer.append(queue_id, "started", {}, "start")
        answer = waiting.result(PATIENCE_OF_TESTS_S)
        assert time.monotonic() - began < SOON_S
    assert (answer.status_code, answer.json()["status"]) == (200, "running")
    assert answer.headers["etag"] != tag


def test_many_long_polls_read_the_table_once_after_a_change(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{api.address}/api/evaluations/queue/{asked_evaluation(writer)}"
    tag = http.get(path).headers["etag"]
    read = []
    monkeypatch.setattr(queue_routes, "evaluation_body", lambda *given: read.append(1) or evaluation_body(*given))
    with ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag}) for _ in range(10)]
        until(lambda: (watch_in(api).watchers, len(read)) == (10, 10), "all to wait")
        writer.append(path.rpartition("/")[2], "started", {}, "start")
        assert {one.result(PATIENCE_OF_TESTS_S).json()["status"] for one in waiting} == {"running"}
    # Ten before they wait, and one for all after the change.
    assert len(read) <= 11


def test_the_wish_for_an_end_wakes_a_long_poll(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "WATCH_EVERY_S", 1_000.0)
    path = f"{api.address}/api/evaluations/queue/{asked_evaluation(writer)}"
    tag = http.get(path).headers["etag"]
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag})
        until(lambda: watch_in(api).watchers == 1, "it to wait")
        assert http.post(f"{path}/cancel").status_code == 202
        assert waiting.result(PATIENCE_OF_TESTS_S).json()["cancel_asked_by"] == "operator"
        assert time.monotonic() - began < SOON_S


def test_a_long_poll_is_answered_when_the_place_in_the_queue_changes(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore
) -> None:
    """It waited to its end, though the tag was another one."""
    before, queue_id = asked_evaluation(writer), asked_evaluation(writer)
    path = f"{api.address}/api/evaluations/queue/{queue_id}"
    first = http.get(path)
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": first.headers["etag"]})
        until(lambda: watch_in(api).watchers == 1, "it to wait")
        writer.append(before, "started", {}, "start")
        answer = waiting.result(PATIENCE_OF_TESTS_S)
        assert time.monotonic() - began < SOON_S
    assert [one.json()["waiting_before"] for one in (first, answer)] == [1, 0]


def test_a_database_that_is_away_for_a_while_loses_no_event(
    http: httpx2.Client, api: ServedApi, services: Services, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_AWAY_S", 0.05)
    away = threading.Event()
    asked_in_vain = []
    for name in ("events", "heads"):
        there = getattr(services.evaluations, name)

        def read(*given: object, there: object = there) -> object:
            if away.is_set():
                asked_in_vain.append(1)
                raise StoreError("the database is away")
            return there(*given)  # type: ignore[operator]

        monkeypatch.setattr(services.evaluations, name, read)
    queue_id = asked_evaluation(writer)
    told: list[ReadEvent] = []
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, http, api.address, queue_id, told)
        until(lambda: told, "the first event")
        away.set()
        write_items(writer, queue_id, 20)
        until(lambda: len(asked_in_vain) > 3, "the database to be missed")
        away.clear()
        writer.append(queue_id, "completed", {}, "end")
        following.result(PATIENCE_OF_TESTS_S)
    assert [event.number for event in told] == list(range(1, 23))


def test_a_token_that_was_taken_out_gets_no_answer_of_a_long_poll(
    http: httpx2.Client, api: ServedApi, tmp_path: Path, writer: EvaluationStore
) -> None:
    queue_id = asked_evaluation(writer)
    path = f"{api.address}/api/evaluations/queue/{queue_id}"
    tag = http.get(path).headers["etag"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag})
        until(lambda: watch_in(api).watchers == 1, "it to wait")
        (tmp_path / "tokens.yaml").write_text("tokens: []\n", encoding="utf-8")
        writer.append(queue_id, "started", {}, "start")
        answer = waiting.result(PATIENCE_OF_TESTS_S)
    assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer")


def test_a_long_poll_says_that_the_database_is_away(
    http: httpx2.Client, api: ServedApi, services: Services, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_id = asked_evaluation(writer)
    path = f"{api.address}/api/evaluations/queue/{queue_id}"
    tag = http.get(path).headers["etag"]

    def away(*given: object) -> None:
        raise StoreError("the database is away")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag})
        until(lambda: watch_in(api).watchers == 1, "it to wait")
        monkeypatch.setattr(services.evaluations, "evaluation", away)
        writer.append(queue_id, "started", {}, "start")
        answer = waiting.result(PATIENCE_OF_TESTS_S)
    assert (answer.status_code, answer.json()["detail"]) == (503, "the store cannot be reached or written now; try again")


def test_more_than_there_are_places_for_are_sent_away(
    http: httpx2.Client, api: ServedApi, writer: EvaluationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_WATCHERS", 1)
    address = api.address + events_path(asked_evaluation(writer))
    with http.stream("GET", address):
        until(lambda: watch_in(api).watchers == 1, "the first to watch")
        refused = http.get(address)
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
    assert int(refused.headers["retry-after"]) > 0
    until(lambda: watch_in(api).watchers == 0, "the place to be free")


def test_after_a_kill_another_server_goes_on_and_a_signal_ends_open_streams(
    http: httpx2.Client, tmp_path: Path, services: Services
) -> None:
    writer = services.evaluations
    queue_id = asked_evaluation(writer)
    told: list[ReadEvent] = []
    with ThreadPoolExecutor(3) as pool, serving_process(tmp_path) as first, serving_process(tmp_path) as second:
        following = pool.submit(follow, http, first.address(), queue_id, told)
        writing = pool.submit(write_items, writer, queue_id, 80, pause=0.005)
        until(lambda: len(told) > 20, "some events")
        first.process.kill()
        with pytest.raises(httpx2.TransportError):
            following.result(PATIENCE_OF_TESTS_S)
        following = pool.submit(follow, http, second.address(), queue_id, told, told[-1].number)
        writing.result(PATIENCE_OF_TESTS_S)
        until(lambda: len(told) == 81, "all events")
        path = f"{second.address()}/api/evaluations/queue/{queue_id}"
        tag = http.get(path).headers["etag"]
        waiting = pool.submit(http.get, f"{path}?wait=30", headers={"If-None-Match": tag})
        time.sleep(0.2)
        began = time.monotonic()
        second.process.send_signal(signal.SIGTERM)
        second.process.wait(PATIENCE_OF_TESTS_S)
        assert time.monotonic() - began < SOON_S
        following.result(PATIENCE_OF_TESTS_S)
        assert waiting.result(PATIENCE_OF_TESTS_S).status_code == 304
    assert [event.number for event in told] == list(range(1, 82))
