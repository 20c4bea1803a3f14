"""The state of evaluations over HTTP: lists, entity tags, history, and the wish that one ends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from dtef_pipeline.api.queue.evaluation_progress import RunProgress, compute_progress
from resources.evaluations.evaluation_store import Evaluation, EvaluationRun, EvaluationStore, Event, EventKind
from resources.votes.vote_tables import actions
from tests.dtef_pipeline.api.made import client_in, evaluations_of
from tests.dtef_pipeline.api.served import asked_evaluation, finished_evaluation, write_items
from tests.made.run_events import tell

QUEUE = "/api/evaluations/queue"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_in(tmp_path, "operator") as found:
        yield found


@pytest.fixture
def store(client: TestClient) -> EvaluationStore:
    return evaluations_of(client)


def test_an_evaluation_says_what_was_asked_and_how_far_it_is(client: TestClient, store: EvaluationStore) -> None:
    queue_id = asked_evaluation(store)
    tell(store, queue_id, "started", {})
    write_items(store, queue_id, 3)
    found = client.get(f"{QUEUE}/{queue_id}").json()
    assert (found["queue_id"], found["family"], found["status"], found["snapshot"]) == (queue_id, "games", "running", "spring")
    assert (found["submitted_by"], found["last_event"], found["ended_at"]) == ("olga", 5, None)
    assert found["progress"] == {"stage": "episodes", "done": 0, "n_planned": 1, "failed": 0, "answered": 2, "n_requests": 3}
    assert [(run["asks"]["persona_id"], run["status"]) for run in found["runs"]] == [
        ("bold", "running"),
        ("cautious", "running"),
    ]
    assert found["manifest"] == {"persona_ids": ["bold", "cautious"]}
    assert client.get(found["links"]["history"]).json()["next"] == 5


def test_an_evaluation_says_what_was_answered_and_how_many_wait_before_it(client: TestClient, store: EvaluationStore) -> None:
    ended, first, second = [asked_evaluation(store) for _ in range(3)]
    counts = {"n_requests": 4, "answered": 3, "failed": 1, "skipped": 0}
    tell(store, ended, "item", {"stage": "episodes", "calls": counts})
    tell(store, ended, "item", {"restarted": True, "reason": "killed"})
    told = {**counts, "stages": {"episodes": counts}}
    tell(store, ended, "completed", {"calls": told, "warning": "1 of 4 requests was not answered: 1 failed"})
    one = client.get(f"{QUEUE}/{ended}").json()
    assert one["warning"] == "1 of 4 requests was not answered: 1 failed"
    assert (one["calls"], one["waiting_before"], one["restarts"]) == (told, None, 1)
    rows = client.get(QUEUE).json()["evaluations"]
    assert [row["waiting_before"] for row in rows] == [1, 0, None]
    assert [(row["calls"], row["warning"]) for row in rows] == [(None, None), (None, None), (told, one["warning"])]
    assert [client.get(f"{QUEUE}/{queue_id}").json()["waiting_before"] for queue_id in (first, second)] == [0, 1]


def test_two_servers_give_the_same_tag_until_something_changes(
    client: TestClient, store: EvaluationStore, tmp_path: Path
) -> None:
    queue_id = asked_evaluation(store)
    path = f"{QUEUE}/{queue_id}"
    with client_in(tmp_path, "admin") as another:
        first, second = client.get(path), another.get(path)
        assert first.headers["etag"] == second.headers["etag"]
        assert first.content == second.content
        tell(store, queue_id, "started", {})
        assert another.get(path).headers["etag"] != first.headers["etag"]


def test_several_headers_if_none_match_are_one_list(client: TestClient, store: EvaluationStore) -> None:
    path = f"{QUEUE}/{asked_evaluation(store)}"
    tag = client.get(path).headers["etag"]
    same = client.get(path, headers=[("If-None-Match", '"x"'), ("If-None-Match", tag)])
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    other = client.get(path, headers={"If-None-Match": f"w/{tag.removeprefix('W/')}"})
    assert (other.status_code, other.headers["etag"]) == (200, tag)


def test_an_evaluation_that_is_not_there_is_404_whatever_is_sent(client: TestClient) -> None:
    for unknown in ("0" * 32, "x", "%00", "%F0%28", "A" * 32, "' OR 1=1 --", "\u00b2"):
        for path in (
            f"{QUEUE}/{unknown}",
            f"{QUEUE}/{unknown}?wait=30",
            f"{QUEUE}/{unknown}/events",
            f"{QUEUE}/{unknown}/events/history",
        ):
            assert client.get(path, headers={"If-None-Match": "*"}).status_code == 404, path
        assert client.post(f"{QUEUE}/{unknown}/cancel").status_code == 404


@pytest.mark.parametrize("wait", ["-1", "30.1", "31", "ten", "", "nan", "inf", "1e400", "0x1"])
def test_a_wait_outside_its_bounds_is_refused(client: TestClient, store: EvaluationStore, wait: str) -> None:
    answer = client.get(f"{QUEUE}/{asked_evaluation(store)}", params={"wait": wait})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "query.wait")


def test_who_has_not_the_present_state_does_not_wait(client: TestClient, store: EvaluationStore) -> None:
    path = f"{QUEUE}/{asked_evaluation(store)}?wait=30"
    assert client.get(path).status_code == 200
    assert client.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_a_wait_in_which_nothing_happens_ends_with_304(client: TestClient, store: EvaluationStore) -> None:
    path = f"{QUEUE}/{asked_evaluation(store)}"
    tag = client.get(path).headers["etag"]
    answer = client.get(f"{path}?wait=0.3", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)


def test_the_list_has_the_newest_first_page_by_page(client: TestClient, store: EvaluationStore) -> None:
    made = [asked_evaluation(store) for _ in range(5)]
    found, cursor = [], ""
    while True:
        page = client.get(f"{QUEUE}?limit=2{cursor}").json()
        found += [one["queue_id"] for one in page["evaluations"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert found == made[::-1]


def test_the_list_can_be_of_one_status(client: TestClient, store: EvaluationStore) -> None:
    waiting, running, done = asked_evaluation(store), asked_evaluation(store), finished_evaluation(store, 4)
    tell(store, running, "started", {})
    write_items(store, running, 2)
    for status, expected in {"queued": [waiting], "running": [running], "completed": [done], "failed": []}.items():
        page = client.get(QUEUE, params={"status": status}).json()
        assert [one["queue_id"] for one in page["evaluations"]] == expected
        assert page["next"] is None
    one = client.get(QUEUE, params={"status": "running"}).json()["evaluations"][0]
    assert (one["progress"]["answered"], one["last_event"], one["run_count"]) == (1, 4, 2)
    assert client.get(QUEUE, params={"status": "asleep"}).status_code == 422


def test_the_list_of_one_status_goes_on_page_by_page(client: TestClient, store: EvaluationStore) -> None:
    """All evaluations were read, a hundred at a time, to find those of one status."""
    made = [(asked_evaluation(store), finished_evaluation(store, 2))[1] for _ in range(5)]
    first = client.get(f"{QUEUE}?status=completed&limit=3").json()
    second = client.get(f"{QUEUE}?status=completed&limit=3&cursor={first['next']}").json()
    assert [one["queue_id"] for page in (first, second) for one in page["evaluations"]] == made[::-1]
    assert (first["next"], second["next"]) == (made[2], None)


def test_the_list_and_health_read_no_runs(client: TestClient, store: EvaluationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred runs of each of two hundred evaluations were read to be counted."""
    asked_evaluation(store)
    finished_evaluation(store, 3)
    monkeypatch.setattr(
        "resources.evaluations.evaluation_store.EvaluationRun", lambda *run: pytest.fail(f"a run was read: {run}")
    )
    assert [one["run_count"] for one in client.get(QUEUE).json()["evaluations"]] == [2, 2]
    told = client.get("/api/health").json()["evaluations"]
    assert (told["open"], told["last_event_at"] is None) == (1, False)
    assert client.get("/queue").status_code == 200


def test_the_list_has_a_tag_and_refuses_what_is_no_cursor(client: TestClient, store: EvaluationStore) -> None:
    asked_evaluation(store)
    tag = client.get(QUEUE).headers["etag"]
    assert client.get(QUEUE, headers={"If-None-Match": tag}).status_code == 304
    for query in ("cursor=x", "cursor=" + "0" * 32, "cursor=%00", "cursor=" + "1" * 5_000, "limit=0", "limit=9999", "limit=x"):
        assert client.get(f"{QUEUE}?{query}").status_code == 422, query


def test_history_is_read_piece_by_piece(client: TestClient, store: EvaluationStore) -> None:
    queue_id = finished_evaluation(store, 7)
    found, after = [], 0
    while events := client.get(f"{QUEUE}/{queue_id}/events/history?after={after}&limit=3").json()["events"]:
        found += [(one["seq"], one["kind"]) for one in events]
        after = events[-1]["seq"]
    assert found == [(1, "queued"), *((seq, "item") for seq in range(2, 7)), (7, "completed")]
    last = client.get(f"{QUEUE}/{queue_id}/events/history?after=7").json()
    assert last == {"events": [], "next": 7}
    for query in ("after=-1", "after=x", f"after={2**70}", "limit=0", "limit=1001"):
        assert client.get(f"{QUEUE}/{queue_id}/events/history?{query}").status_code == 422, query


def test_the_wish_for_an_end_is_noted_once_with_who_and_when(client: TestClient, store: EvaluationStore) -> None:
    queue_id = asked_evaluation(store)
    before = client.get(f"{QUEUE}/{queue_id}").headers["etag"]
    for _ in range(2):
        answer = client.post(f"{QUEUE}/{queue_id}/cancel")
        assert (answer.status_code, answer.json()["cancelled_by"], answer.json()["status"]) == (202, "operator", "queued")
        assert answer.headers["etag"] != before
    noted = store.database.read(
        lambda connection: connection.execute(sa.select(actions.c.who, actions.c.what, actions.c.after)).all()
    )
    assert [(who, what, json.loads(after)["queue_id"]) for who, what, after in noted] == [
        ("olga", "submit evaluation", queue_id),
        ("operator", "cancel evaluation", queue_id),
    ]


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
