"""The sensor `evaluation_queue` and the events of runs: each evaluation gets one run, and its events end with what became of it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from assets.evaluations import queue_sensor, run_log
from assets.stage import partitions
from assets.stage.resources import Store
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from resources.evaluations.evaluation_store import QUEUE_TAG, EvaluationStore
from tests.assets.evaluations.conftest import SENSOR, Queue
from tests.assets.games.conftest import SHOW_CARDS


def test_a_tick_without_evaluations_makes_nothing(state: Path) -> None:
    with open_dagster_instance() as instance, dg.build_sensor_context(instance, resources={"store": Store()}) as context:
        assert "no evaluation has been requested" in str(SENSOR(context).skip_message)
    assert not (state / "responses.sqlite").exists()


def test_an_evaluation_is_one_run_whose_events_have_no_gap(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PROGRESS_INTERVAL_S", 0.0)
    queue_id = queue.submit()
    (request,) = queue.tick()
    assert (request.job_name, request.tags[QUEUE_TAG], request.tags["dtef/snapshot"]) == ("games_pipeline", queue_id, "base")
    assert queue.run(request).success
    assert queue.tick() == []
    events = queue.events(queue_id)
    assert [one.kind for one in events][:3] == ["queued", "started", "item"]
    assert [one.kind for one in events].count("started") == 1
    assert events[-1].kind == "completed"
    items = [one.data for one in events if one.kind == "item"]
    done = [one for one in items if "key" in one]
    assert [(one["stage"], one["key"], one["done"], one["n_planned"], one["status"]) for one in done] == [
        (stage, SHOW_CARDS, 1, 1, "done") for stage in ("scenario_items", "episode_prompts", "episodes", "episode_scores")
    ]
    answered = [one for one in items if "answered" in one]
    assert answered
    assert {one["stage"] for one in answered} == {"episodes"}
    assert all(0 <= one["answered"] <= one["n_planned"] for one in answered)
    # Episodes share requests, and were counted once each: what was expected fell.
    expected = [*(one["n_planned"] for one in answered), events[-1].data["calls"]["n_requests"]]
    assert expected == sorted(expected)
    assert queue.tick() == []
    assert queue.kinds(queue_id)[-1] == "completed"


def test_a_run_that_fails_says_of_each_partition_why(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue_id = queue.submit()
    (request,) = queue.tick()
    monkeypatch.setattr("assets.games.stages.build_item_rows", lambda *_: 1 / 0)
    assert not queue.run(request).success
    queue.tick()
    *_, item, end = queue.events(queue_id)
    assert (item.data["status"], item.data["reason"]) == ("failed", "ZeroDivisionError: division by zero")
    assert (end.kind, end.data["failed"]) == ("failed", {SHOW_CARDS: "ZeroDivisionError: division by zero"})
    assert end.data["reason"] == f"{SHOW_CARDS}: ZeroDivisionError: division by zero"


def test_what_nobody_wants_any_more_is_cancelled(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(type(queue.instance.run_coordinator), "cancel_run", lambda _, run_id: told.append(run_id))
    waiting, running, ended, doomed = [queue.submit() for _ in range(4)]
    run = queue.made_up(running, dg.DagsterRunStatus.STARTED)
    queue.made_up(ended, dg.DagsterRunStatus.CANCELED)
    killed = queue.made_up(doomed, dg.DagsterRunStatus.STARTED)
    queue.instance.report_run_failed(killed)
    for queue_id in (waiting, running, doomed):
        queue.store.ask_to_cancel(queue_id, "boss")
    assert queue.tick() == []
    assert told == [run.run_id]
    assert [queue.kinds(one)[-1] for one in (waiting, running, ended, doomed)] == [
        "cancelled",
        "started",
        "cancelled",
        "cancelled",
    ]
    assert queue.events(waiting)[-1].data == {"by": "boss"}
    again = queue.instance.get_run_by_id(killed.run_id)
    assert again
    assert again.tags["dagster/will_retry"] == "false"
    queue.instance.report_run_canceled(run)
    queue.tick()
    assert queue.events(running)[-1].data | {"call_costs": {}} == {"by": "boss", "dagster_run_id": run.run_id, "call_costs": {}}


def test_a_run_that_fails_as_it_is_cancelled_is_cancelled_and_not_started_again(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was still starting did not hear of the end: its run failed, was started once more, and that was told as a crash."""
    monkeypatch.setattr(type(queue.instance.run_coordinator), "cancel_run", lambda *_: True)
    queue_id = queue.submit()
    run = queue.made_up(queue_id, dg.DagsterRunStatus.STARTING)
    queue.store.ask_to_cancel(queue_id, "boss")
    queue.tick()
    queue.instance.report_run_failed(run, "Detected run worker status FAILED")
    failed = queue.instance.get_run_by_id(run.run_id)
    assert failed
    assert failed.tags["dagster/will_retry"] == "false"
    queue.tick()
    assert queue.kinds(queue_id) == ["queued", "cancelled"]


def test_a_worker_that_cannot_be_ended_ends_no_evaluation(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(queue.instance.run_coordinator), "cancel_run", lambda *_: 1 / 0)
    queue_id = queue.submit()
    queue.made_up(queue_id, dg.DagsterRunStatus.STARTED)
    queue.store.ask_to_cancel(queue_id, "boss")
    queue.tick()
    assert queue.kinds(queue_id) == ["queued", "started"]


def test_a_deleted_run_ends_its_evaluation(queue: Queue) -> None:
    queue_id = queue.submit()
    run = queue.made_up(queue_id, dg.DagsterRunStatus.STARTED)
    queue.tick()
    queue.instance.delete_run(run.run_id)
    assert queue.tick() == []
    assert queue.kinds(queue_id) == ["queued", "failed"]
    assert queue.events(queue_id)[-1].data["reason"] == "its run was deleted in Dagster"


def test_a_killed_worker_is_no_end_while_the_run_is_started_again(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    continued, given_up = queue.submit(), queue.submit()
    for queue_id in (continued, given_up):
        killed = queue.made_up(queue_id, dg.DagsterRunStatus.STARTED)
        queue.instance.report_run_failed(killed, "The worker is gone.")
        assert queue.instance.get_run_by_id(killed.run_id).tags["dagster/will_retry"] == "true"  # type: ignore[union-attr]
    assert queue.tick() == []
    assert [queue.kinds(one)[-1] for one in (continued, given_up)] == ["started", "started"]
    again = queue.started_again(continued)
    queue.tick()
    assert queue.kinds(continued) == ["queued", "started", "item"]
    restart = {"restarted": True, "dagster_run_id": again.run_id, "reason": "The worker is gone."}
    assert queue.events(continued)[-1].data == restart
    monkeypatch.setattr(run_log, "RETRY_PATIENCE_S", 0.0)
    queue.tick()
    assert queue.kinds(continued) == ["queued", "started", "item"]
    assert queue.events(given_up)[-1].kind == "failed"
    assert queue.events(given_up)[-1].data["reason"] == "The worker is gone."
    queue.instance.report_run_failed(again)
    queue.tick()
    assert queue.events(continued)[-1].kind == "failed"
    assert queue.events(continued)[-1].data["reason"] == "its worker died, 2 times: it was killed, or ran out of memory"


def test_one_bad_evaluation_stops_no_other(queue: Queue) -> None:
    plan = queue.store.evaluation(queue.submit()).plan
    bad = [
        queue.add({**plan, "job": "no_such_job"}),
        queue.add({**plan, "config": {"episodes": {"no_such_setting": 1}}}),
        queue.add({**plan, "config": {"no_such_stage": {}}}),
        queue.add({**plan, "keys": ["a/b"], "new_keys": False}),
        queue.add({**plan, "keys": []}),
        queue.add({}),
    ]
    good = queue.submit()
    assert [one.tags[QUEUE_TAG] for one in queue.tick()][-1] == good
    for queue_id in bad:
        end = queue.events(queue_id)[-1]
        assert end.kind == "failed"
        assert end.data["reason"].startswith("it cannot be run: ")
    assert queue.kinds(good) == ["queued"]


def test_any_error_of_dagsters_storage_is_waited_for(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that was none of SQLAlchemy's ended the evaluation."""
    queue_id = queue.submit()
    with monkeypatch.context() as patched:
        patched.setattr(dg.DagsterInstance, "get_dynamic_partitions", lambda *_: 1 / 0)
        assert queue.tick() == []
    assert [one.kind for one in queue.events(queue_id)] == ["queued"]
    assert [one.tags[QUEUE_TAG] for one in queue.tick()] == [queue_id]


def test_a_cancel_that_dagster_cannot_note_ends_nothing_while_the_run_may_start_again(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluation had failed, and the daemon ran it on; and an event that was lost afterwards made `failed` of `cancelled`."""
    queue_id = queue.submit()
    queue.instance.report_run_failed(queue.made_up(queue_id, dg.DagsterRunStatus.STARTED), "The worker is gone.")
    queue.store.ask_to_cancel(queue_id, "boss")

    def away(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    for owner, name in ((dg.DagsterInstance, "add_run_tags"), (EvaluationStore, "end")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, away)
            queue.tick()
        assert queue.kinds(queue_id)[-1] == "started"
    queue.tick()
    assert queue.kinds(queue_id)[-1] == "cancelled"


def test_a_run_that_never_appears_is_given_up(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_sensor, "MAX_REQUESTS", 2)
    queue_id = queue.submit()
    assert [len(queue.tick()) for _ in range(3)] == [1, 1, 0]
    assert "created no run after 2 requests" in queue.events(queue_id)[-1].data["reason"]
    queue.cursor = "what somebody typed in the UI"
    queue.submit()
    assert len(queue.tick()) == 1


def test_an_event_that_cannot_be_stored_fails_no_stage(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue_id = queue.submit()
    (request,) = queue.tick()
    with monkeypatch.context() as broken:
        broken.setattr(partitions, "log_run_event", lambda *_: 1 / 0)
        assert queue.run(request).success
    queue.tick()
    assert queue.kinds(queue_id) == ["queued", "started", "completed"]
