"""The API killed in the middle of a stream: a subscriber goes on where it was, and gets each event once."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import dagster as dg

from assets.evaluations.run_log import DagsterRunLog
from dtef_pipeline.errors import StoreError
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.served import Subscriber, started, until
from tests.made.run_events import begin_run, made_home, tell_in

ITEMS = 25


def queued(store: EvaluationStore) -> str:
    evaluation, _ = store.submit("games", {"seeds": [1]}, {"snapshot": "base"}, [RunSpec("poker/kuhn", {})], "operator")
    return evaluation.queue_id


def opened(url: str, folder: Path) -> tuple[EvaluationStore, dg.DagsterInstance]:
    """The evaluations, and the home of Dagster that the servers of the folder read."""
    instance = made_home(folder / "dagster")
    return EvaluationStore(url, DagsterRunLog(instance)), instance


def write_events(store: EvaluationStore, instance: dg.DagsterInstance, queue_id: str) -> None:
    """A run that is killed in the middle, and is started again."""
    first = begin_run(instance, queue_id)
    for number in range(ITEMS):
        tell_in(instance, first, {"done": number})
    instance.report_run_failed(first, "The worker is gone.")
    again = begin_run(instance, queue_id, first.run_id)
    tell_in(instance, first, {"done": "by a worker that had been given up"})
    for number in range(ITEMS):
        tell_in(instance, again, {"done": number})
    until(lambda: has_ended(store, queue_id), "the end")


def has_ended(store: EvaluationStore, queue_id: str) -> bool:
    """One try to store the end, as a tick of the sensor makes it."""
    try:
        return store.end(queue_id, "completed", {}) or not store.open_evaluations()
    except StoreError:
        return False


EXPECTED = [*enumerate(["queued", "started", *["item"] * (2 * ITEMS + 1), "completed"], 1)]


def test_a_stream_continues_after_a_kill_with_each_event_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/responses.sqlite"
    store, instance = opened(url, tmp_path)
    with store, instance:
        queue_id = queued(store)
        writer = threading.Thread(target=write_events, args=(store, instance, queue_id))
        with started(tmp_path, url) as api:
            subscriber = Subscriber(api.address, queue_id)
            until(lambda: len(subscriber.seen) > 0, "events")
            writer.start()
            until(lambda: len(subscriber.seen) > 5, "events")
            assert api.end(signal.SIGKILL) == -signal.SIGKILL
        with started(tmp_path, url, api.port) as again:
            until(subscriber.ended.is_set, "the end of the stream")
            writer.join()
            assert subscriber.seen == EXPECTED
            assert subscriber.breaks > 0
            # A stream that is open holds no one up who stops the server.
            waiting = Subscriber(again.address, queued(store))
            until(lambda: len(waiting.seen) > 0, "events")
            waiting.left = True
            assert again.end(signal.SIGTERM, within=15) in (0, -signal.SIGTERM)
    assert "Traceback" not in (tmp_path / "api.log").read_text(encoding="utf-8")
