"""The store of evaluations: numbers of events without gaps, one terminal event, the same key the same evaluation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from assets.evaluations.run_log import Ending, add_call_counts
from dtef_pipeline.errors import StoreError
from resources.evaluations.evaluation_calls import CallCounts, StageCalls, count_calls_left, sum_reported_calls
from resources.evaluations.evaluation_store import EvaluationStore, Event, RunSpec, evaluation_versions, round_dollars
from tests.made.run_events import RUN_LOG, tell
from tests.resources.broken_commits import break_after_commit

ANSWER_AND_BATTERY_COLUMNS = [RunSpec("poker/kuhn", {"persona": "bold"}), RunSpec("poker/kuhn", {"persona": "cautious"})]


@pytest.fixture
def store(tmp_path: Path) -> EvaluationStore:
    return EvaluationStore(tmp_path / "responses.sqlite", RUN_LOG)


def submitted(store: EvaluationStore, key: str | None = None, models: str = "m") -> str:
    found, _ = store.submit("games", {"models": [models]}, {"job": "games_pipeline"}, ANSWER_AND_BATTERY_COLUMNS, "olga", key)
    return found.queue_id


def test_an_evaluation_is_queued_with_its_runs(store: EvaluationStore) -> None:
    found, new = store.submit("games", {"models": ["m"]}, {"job": "games_pipeline"}, ANSWER_AND_BATTERY_COLUMNS, "olga")
    assert new
    assert store.evaluation(found.queue_id) == found
    assert [(one.key, one.asks["persona"]) for one in found.runs] == [("poker/kuhn", "bold"), ("poker/kuhn", "cautious")]
    assert store.run(found.runs[1].run_id) == (found, found.runs[1])
    assert [(one.seq, one.kind, one.data["runs"]) for one in store.events(found.queue_id)] == [(1, "queued", 2)]


@pytest.mark.parametrize(("version", "advice"), [(99, "upgrade dtef-pipeline"), (1, "`dtef export responses`")])
def test_evaluations_of_another_version_are_refused_with_advice(
    store: EvaluationStore, tmp_path: Path, version: int, advice: str
) -> None:
    """Events of version 1 count under other names: the queue's page failed on them with a KeyError."""
    store.database.write(lambda one: one.execute(sa.update(evaluation_versions).values(schema_version=version)))
    with pytest.raises(StoreError, match=f"schema version {version}.*{advice}"):
        EvaluationStore(tmp_path / "responses.sqlite")


def test_nothing_comes_after_the_end(store: EvaluationStore) -> None:
    queue = submitted(store)
    tell(store, queue, "started", {})
    assert [one.queue_id for one in store.open_evaluations()] == [queue]
    assert store.end(queue, "failed", {"why": "dead"})
    assert not store.end(queue, "completed", {})
    tell(store, queue, "item", {"told": "late"})
    assert store.open_evaluations() == []
    events = store.events(queue)
    assert [(one.seq, one.kind) for one in events] == [(1, "queued"), (2, "started"), (3, "failed")]
    assert store.events(queue, after=2) == events[2:]
    assert store.list_brief_events([queue])[queue][1].happened_at == events[1].happened_at


def test_those_that_wait_stand_in_their_order(store: EvaluationStore) -> None:
    first, started, cancelled, last = [submitted(store) for _ in range(4)]
    tell(store, started, "started", {})
    store.end(cancelled, "cancelled", {})
    assert store.waiting() == [first, last]
    assert [one.queue_id for one in store.latest(status="queued")] == [last, first]
    assert [one.queue_id for one in store.latest(status="running")] == [started]


def test_a_commit_that_was_not_confirmed_is_one_evaluation(store: EvaluationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is done again after its commit asked for `the one` evaluation without a key, of which there were two."""
    earlier = [submitted(store), submitted(store)]
    break_after_commit(store.database, monkeypatch)
    found, new = store.submit("games", {"models": ["m"]}, {"job": "games_pipeline"}, ANSWER_AND_BATTERY_COLUMNS, "olga")
    assert new
    assert [one.queue_id for one in store.latest()] == [found.queue_id, *reversed(earlier)]


SENTENCES = [
    (StageCalls(CallCounts(24, 0, 0)), None),
    (StageCalls(CallCounts(21, 2, 1)), "3 of 24 requests were not answered: 2 failed, 1 was left out as the budget ended"),
    (StageCalls(CallCounts(1_199, 1, 0), "m: no answer"), "1 of 1,200 requests was not answered: 1 failed (m: no answer)"),
    (
        StageCalls(CallCounts(0, 0, 8), None, "the run's max_calls of 0 was reached"),
        "none of 8 requests was answered: 8 were left out as the budget ended (the run's max_calls of 0 was reached)",
    ),
    (StageCalls(CallCounts(0, 1, 0), "m: gone"), "none of 1 request was answered: 1 failed (m: gone)"),
]


def told(stage: str, calls: StageCalls) -> Event:
    return Event(1, "item", {"stage": stage, **calls.build_json()}, datetime(2026, 1, 1, tzinfo=UTC))


def said(kind: Any, **data: Any) -> Event:
    return Event(1, kind, data, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("calls", "sentence"), SENTENCES)
def test_what_was_not_answered_is_stated_in_a_sentence(calls: StageCalls, sentence: str | None) -> None:
    assert calls.unanswered_note == sentence
    found = sum_reported_calls([told("answers", calls)])
    assert found
    assert found.unanswered_note == sentence
    assert found.stages == {"answers": calls}


def test_several_stages_are_named_and_summed() -> None:
    some, none = StageCalls(CallCounts(3, 1, 0)), StageCalls(CallCounts(0, 0, 2))
    found = sum_reported_calls([told("responses", some), told("judgements", none)])
    assert found
    assert found.unanswered_note == (
        "responses: 1 of 4 requests was not answered: 1 failed; "
        "judgements: none of 2 requests was answered: 2 were left out as the budget ended"
    )
    assert not found.is_without_answer
    assert found.build_json() == {
        "n_requests": 6,
        "answered": 3,
        "failed": 1,
        "skipped": 2,
        "stages": {
            "responses": {"n_requests": 4, "answered": 3, "failed": 1, "skipped": 0},
            "judgements": {"n_requests": 2, "answered": 0, "failed": 0, "skipped": 2},
        },
    }


def test_of_a_stage_that_tells_again_the_last_word_holds() -> None:
    first, last = StageCalls(CallCounts(1, 3, 0), "m: gone"), StageCalls(CallCounts(4, 0, 0))
    found = sum_reported_calls([told("answers", first), said("item", restarted=True), told("answers", last)])
    assert found
    assert found.counts == CallCounts(4, 0, 0)


def test_where_nobody_was_asked_nothing_is_reported() -> None:
    """Events of older code have no counts either."""
    assert (
        sum_reported_calls([said("queued"), said("item", stage="answers", answered=3, n_planned=4), said("completed")]) is None
    )


def test_what_a_cancel_left_unasked_is_reported() -> None:
    """59 of 59 calls were answered, the page said, of an evaluation of 640 that was cancelled."""
    events = [
        told("rules", StageCalls(CallCounts(2, 0, 0))),
        said("item", stage="moves", answered=58, failed=0, skipped=0, n_planned=640),
        told("moves", StageCalls(CallCounts(59, 0, 0))),
    ]
    assert count_calls_left(events[:1]) == 0
    assert count_calls_left(events[:2]) == 640
    assert count_calls_left(events) == 581
    end = add_call_counts(Ending("cancelled", {}), sum_reported_calls(events), count_calls_left(events))
    assert end.data["warning"] == "at least 581 further requests were not made before the end"
    assert "warning" not in add_call_counts(Ending("completed", {}), sum_reported_calls(events), 581).data


def test_dollars_are_reported_without_the_noise_of_floats() -> None:
    noisy = sum([0.1] * 3)
    assert (repr(noisy), repr(round_dollars(noisy))) == ("0.30000000000000004", "0.3")
    assert round_dollars(2.5e-7) == pytest.approx(2.5e-7)
    assert round_dollars(None) is None
