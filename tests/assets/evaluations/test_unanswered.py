"""An evaluation is completed when something was answered, and says what was not."""

from __future__ import annotations

from typing import Any

from resources.evaluations.evaluation_store import Event
from tests.assets.evaluations.conftest import Queue
from tests.fake_llm_server import Fault, always


def ended(queue: Queue, **changed: Any) -> Event:
    """The last event of an evaluation whose run was green."""
    queue_id = queue.submit(**changed)
    (request,) = queue.tick()
    assert queue.run(request).success
    queue.tick()
    return queue.events(queue_id)[-1]


def test_an_evaluation_of_which_nothing_was_answered_failed_and_says_how(queue: Queue) -> None:
    """It was completed, without a word that every call had failed; and named the budget alone: all were left out, none had failed."""
    queue.league.server.fault = always(Fault("status", status=500, message="out of memory"))
    end = ended(queue, budget={"max_calls": 1})
    assert end.kind == "failed"
    calls = end.data["calls"]
    assert calls["stages"] == {"episodes": {name: calls[name] for name in ("n_requests", "answered", "failed", "skipped")}}
    assert (calls["answered"], calls["failed"]) == (0, 0)
    assert calls["skipped"] == calls["n_requests"] > 0
    assert end.data["reason"].startswith(f"none of {calls['n_requests']} requests was answered: ")
    assert "max_calls of 1 was reached" in end.data["reason"]
    assert "out of memory" in end.data["reason"]
    # A server that fails may bill all the same.
    assert end.data["call_costs"]["unpriced"] == len(queue.league.server.calls) > 0


def test_an_evaluation_of_which_some_was_answered_is_completed_with_a_warning(queue: Queue) -> None:
    server = queue.league.server
    server.fault = lambda call: Fault("status", status=400) if call.body["model"] == "sloppy" else None
    end = ended(queue, models=["legal", "sloppy"])
    calls = end.data["calls"]
    assert end.kind == "completed"
    assert calls["answered"] == server.answered > 0
    assert calls["failed"] > 0
    assert end.data["warning"].startswith(f"{calls['failed']} of {calls['n_requests']} requests were not answered: ")
    assert "(sloppy: " in end.data["warning"]
    assert end.data["call_costs"]["calls"] == calls["answered"]
    assert end.data["call_costs"]["prompt_tokens"] > 0
    server.fault = lambda call: None
    before = server.answered
    again = ended(queue, models=["legal", "sloppy"])
    assert "warning" not in again.data
    assert again.data["call_costs"]["calls"] == server.answered - before
    assert again.data["calls"]["answered"] == again.data["calls"]["n_requests"]


def test_a_run_of_baselines_makes_no_calls_and_is_completed(queue: Queue) -> None:
    end = ended(queue, persona_ids=["none"], models=["baseline/random"])
    assert end.kind == "completed"
    assert "calls" not in end.data
