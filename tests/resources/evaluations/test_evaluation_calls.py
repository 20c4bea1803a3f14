"""What an evaluation says of its requests, in numbers and words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from assets.evaluations.run_endings import Ending, add_call_counts
from resources.evaluations.evaluation_calls import CallCounts, StageCalls, count_calls_left, sum_reported_calls
from resources.evaluations.evaluation_counts import round_dollars
from resources.evaluations.evaluation_store import Event

SENTENCES = [
    (StageCalls(CallCounts(24, 0, 0)), None),
    (
        StageCalls(CallCounts(21, 2, 1)),
        "3 of 24 requests were not answered: 2 failed, 1 was left out as the budget ended",
    ),
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
        "asked": 6,
        "answered": 3,
        "failed": 1,
        "skipped": 2,
        "stages": {
            "responses": {"asked": 4, "answered": 3, "failed": 1, "skipped": 0},
            "judgements": {"asked": 2, "answered": 0, "failed": 0, "skipped": 2},
        },
    }


def test_of_a_stage_that_tells_again_the_last_word_holds() -> None:
    first, last = StageCalls(CallCounts(1, 3, 0), "m: gone"), StageCalls(CallCounts(4, 0, 0))
    found = sum_reported_calls([told("answers", first), said("item", restarted=True), told("answers", last)])
    assert found
    assert found.counts == CallCounts(4, 0, 0)


def test_where_nobody_was_asked_nothing_is_reported() -> None:
    """Events of older code have no counts either."""
    assert sum_reported_calls([said("queued"), said("item", stage="answers", answered=3, of=4), said("completed")]) is None


def test_what_a_cancel_left_unasked_is_reported() -> None:
    """59 of 59 calls were answered, the page said, of an evaluation of 640 that was cancelled."""
    events = [
        told("rules", StageCalls(CallCounts(2, 0, 0))),
        said("item", stage="moves", answered=58, failed=0, skipped=0, of=640),
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
