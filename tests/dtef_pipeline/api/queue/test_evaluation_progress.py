"""How far an evaluation is follows from its events alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dtef_pipeline.api.queue.evaluation_progress import RunProgress, compute_progress
from resources.evaluations.evaluation_store import Evaluation, EvaluationRun, Event, EventKind

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = {"keys": ["a", "b"], "config": {"prompts": {}, "answers": {}}}
RUNS = tuple(EvaluationRun(f"run {key}", "queue", key, {}) for key in "ab")
ASKED_FOR = Evaluation("queue", "games", {}, PLAN, "operator", BEGUN, 2, RUNS)
QUEUED: tuple[EventKind, Mapping[str, Any]] = ("queued", {})
STARTED: tuple[EventKind, Mapping[str, Any]] = ("started", {})


def events_told(*told: tuple[EventKind, Mapping[str, Any]]) -> list[Event]:
    return [Event(seq, kind, data, BEGUN + timedelta(seconds=seq)) for seq, (kind, data) in enumerate(told, start=1)]


def item(stage: str, key: str, status: str = "done", **further: Any) -> tuple[EventKind, Mapping[str, Any]]:
    return "item", {"stage": stage, "key": key, "done": 1, "n_planned": 2, "status": status, **further}


def test_what_waits_has_not_started() -> None:
    found = compute_progress(ASKED_FOR, events_told(QUEUED))
    assert (found.status, found.last_event, found.started_at, found.ended_at) == ("queued", 1, None, None)
    assert set(found.runs.values()) == {RunProgress("queued")}


def test_done_counts_partitions_over_all_stages() -> None:
    found = compute_progress(
        ASKED_FOR,
        events_told(
            QUEUED,
            STARTED,
            item("prompts", "a"),
            item("prompts", "b"),
            ("item", {"stage": "answers", "answered": 7, "n_planned": 9}),
        ),
    )
    assert found.steps.model_dump() == {
        "stage": "answers",
        "done": 2,
        "n_planned": 4,
        "failed": 0,
        "answered": 7,
        "n_requests": 9,
    }
    assert found.started_at == BEGUN + timedelta(seconds=2)


def test_a_run_is_completed_when_its_partition_is_through_every_stage() -> None:
    found = compute_progress(
        ASKED_FOR, events_told(QUEUED, STARTED, item("prompts", "a"), item("prompts", "b"), item("answers", "a"))
    )
    assert found.runs == {"run a": RunProgress("completed"), "run b": RunProgress("running")}


def test_of_a_partition_that_is_tried_again_the_last_word_holds() -> None:
    tried = [QUEUED, STARTED, item("prompts", "a", "failed", reason="no place")]
    assert compute_progress(ASKED_FOR, events_told(*tried)).runs["run a"] == RunProgress("failed", "no place")
    again = compute_progress(ASKED_FOR, events_told(*tried, item("prompts", "a")))
    assert (again.steps.failed, again.runs["run a"].status) == (0, "running")


def test_the_end_says_which_partitions_failed_and_why() -> None:
    found = compute_progress(
        ASKED_FOR, events_told(QUEUED, STARTED, ("failed", {"reason": "one failed", "failed": {"b": "no key"}}))
    )
    assert (found.status, found.reason, found.ended_at) == ("failed", "one failed", BEGUN + timedelta(seconds=3))
    assert found.runs["run b"] == RunProgress("failed", "no key")


def test_a_run_that_was_through_stays_completed_when_the_evaluation_is_cancelled() -> None:
    through = [item("prompts", "a"), item("answers", "a")]
    found = compute_progress(ASKED_FOR, events_told(QUEUED, STARTED, *through, ("cancelled", {"by": "olga"})))
    assert found.runs == {"run a": RunProgress("completed"), "run b": RunProgress("cancelled", "requested by olga")}


def test_what_was_cancelled_before_it_began_has_no_start() -> None:
    assert compute_progress(ASKED_FOR, events_told(QUEUED, ("cancelled", {}))).started_at is None


def test_what_is_completed_without_a_word_of_its_partitions_is_not_stated_to_be_done() -> None:
    """All partitions were done by definition, whatever had been told of them."""
    found = compute_progress(ASKED_FOR, events_told(QUEUED, STARTED, ("completed", {})))
    assert (found.steps.done, found.steps.n_planned, found.calls, found.warning) == (0, 4, None, None)
    assert set(found.runs.values()) == {RunProgress("completed")}


def counts_told(answered: int, failed: int) -> dict[str, int]:
    return {"n_requests": answered + failed, "answered": answered, "failed": failed, "skipped": 0}


def test_what_a_stage_reported_of_its_requests_is_summed_until_the_end_says_it() -> None:
    told = [QUEUED, STARTED, ("item", {"stage": "answers", "calls": counts_told(3, 1)})]
    found = compute_progress(ASKED_FOR, events_told(*told))
    assert found.calls == {**counts_told(3, 1), "stages": {"answers": counts_told(3, 1)}}
    assert (found.steps.answered, found.steps.n_requests) == (3, 4)
    at_end = ("completed", {"calls": counts_told(3, 1), "warning": "1 of 4 requests was not answered"})
    ended = compute_progress(ASKED_FOR, events_told(QUEUED, STARTED, at_end))  # as a list reads it, without the items
    assert (ended.calls, ended.warning) == (counts_told(3, 1), "1 of 4 requests was not answered")


def test_what_is_expected_does_not_shrink_when_a_cancel_leaves_requests_out() -> None:
    told = ("item", {"stage": "answers", "answered": 10, "n_planned": 15})
    found = compute_progress(
        ASKED_FOR, events_told(QUEUED, STARTED, told, ("item", {"stage": "answers", "calls": counts_told(12, 0)}))
    )
    assert (found.steps.answered, found.steps.n_requests) == (12, 15)


def test_no_run_is_completed_where_nothing_was_answered() -> None:
    """The partitions went through every stage, with nothing but failures in their rows."""
    through = [item(stage, "a") for stage in PLAN["config"]]
    end = ("failed", {"reason": "none of 2 requests was answered", "calls": counts_told(0, 2)})
    found = compute_progress(ASKED_FOR, events_told(QUEUED, STARTED, *through, end))
    assert set(found.runs.values()) == {RunProgress("failed", "none of 2 requests was answered")}


def test_a_run_that_was_started_again_keeps_its_stage() -> None:
    found = compute_progress(
        ASKED_FOR, events_told(QUEUED, STARTED, item("prompts", "a"), ("item", {"restarted": True, "reason": "killed"}))
    )
    assert (found.steps.stage, found.restarts, found.status) == ("prompts", 1, "running")
