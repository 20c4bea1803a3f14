"""The store of evaluations: numbers of events without gaps, one terminal event, the same key the same evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from dtef_pipeline.errors import IdempotencyConflict, UnknownEvaluation
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from resources.votes.vote_tables import actions
from tests.made.run_events import RUN_LOG, tell
from tests.resources.broken_commits import break_after_commit

ASKED = [RunSpec("poker/kuhn", {"persona": "bold"}), RunSpec("poker/kuhn", {"persona": "cautious"})]


@pytest.fixture
def store(tmp_path: Path) -> EvaluationStore:
    return EvaluationStore(tmp_path / "responses.sqlite", RUN_LOG)


def submitted(store: EvaluationStore, key: str | None = None, models: str = "m") -> str:
    found, _ = store.submit("games", {"models": [models]}, {"job": "games_pipeline"}, ASKED, "olga", key)
    return found.queue_id


def test_an_evaluation_is_queued_with_its_runs(store: EvaluationStore) -> None:
    found, new = store.submit("games", {"models": ["m"]}, {"job": "games_pipeline"}, ASKED, "olga")
    assert new
    assert store.evaluation(found.queue_id) == found
    assert [(one.key, one.asks["persona"]) for one in found.runs] == [("poker/kuhn", "bold"), ("poker/kuhn", "cautious")]
    assert store.run(found.runs[1].run_id) == (found, found.runs[1])
    assert [(one.seq, one.kind, one.data["runs"]) for one in store.events(found.queue_id)] == [(1, "queued", 2)]


def test_a_submission_stands_in_the_log_of_actions(store: EvaluationStore) -> None:
    found, _ = store.submit("games", {"a": 1}, {}, [], "anna", "key")
    store.submit("games", {"a": 1}, {}, [], "anna", "key")
    rows = store.rows(sa.select(actions.c.who, actions.c.what, actions.c.after))
    assert [(row["who"], row["what"], found.queue_id in row["after"]) for row in rows] == [("anna", "submit evaluation", True)]


def test_the_same_key_is_the_same_evaluation(store: EvaluationStore) -> None:
    first = submitted(store, "k")
    assert submitted(store, "k") == first
    assert len(store.events(first)) == 1
    with pytest.raises(IdempotencyConflict, match="another manifest"):
        submitted(store, "k", models="n")
    assert len({first, submitted(store), submitted(store)}) == 3


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


def test_the_newest_come_first_in_pages(store: EvaluationStore) -> None:
    queues = [submitted(store) for _ in range(3)]
    assert [one.queue_id for one in store.latest(2)] == queues[:0:-1]
    assert [one.queue_id for one in store.latest(2, before=queues[1])] == queues[:1]


def test_what_is_not_there_is_stated_to_be_unknown(store: EvaluationStore) -> None:
    for ask in (
        store.evaluation,
        store.run,
        store.events,
        lambda one: store.ask_to_cancel(one, "o"),
    ):
        with pytest.raises(UnknownEvaluation, match="there is no"):
            ask("0" * 32)


def test_an_end_is_asked_for_once(store: EvaluationStore) -> None:
    queue = submitted(store)
    assert store.ask_to_cancel(queue, "olga")
    assert not store.ask_to_cancel(queue, "otto")
    assert store.cancels([queue]) == {queue: "olga"}


def test_a_commit_that_was_not_confirmed_is_one_evaluation(store: EvaluationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is done again after its commit asked for `the one` evaluation without a key, of which there were two."""
    earlier = [submitted(store), submitted(store)]
    break_after_commit(store.database, monkeypatch)
    found, new = store.submit("games", {"models": ["m"]}, {"job": "games_pipeline"}, ASKED, "olga")
    assert new
    assert [one.queue_id for one in store.latest()] == [found.queue_id, *reversed(earlier)]
