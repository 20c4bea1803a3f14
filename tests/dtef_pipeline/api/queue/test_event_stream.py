"""A stream of events begins where the client left off, and says no more than what the table holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.queue import event_stream
from dtef_pipeline.api.queue.event_stream import find_resume_point
from dtef_pipeline.errors import UnknownEvaluation
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.api.followed import asked_evaluation, events_path, finished_evaluation, read_events
from tests.dtef_pipeline.api.made import client_in, evaluations_of
from tests.made.run_events import RUN_LOG, tell
from tests.made.shared_cases import cases

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
