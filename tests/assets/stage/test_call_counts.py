"""What a stage tells of its requests: each counts once, however often it is asked for."""

from __future__ import annotations

import pytest

from assets.stage.call_counts import CallsOfStage
from dtef_pipeline.asking.request import Failure
from resources.evaluations.evaluation_calls import CallCounts, StageCalls
from resources.gateway.progress import ModelProgress


class Told:
    """A stage's calls, and what was told of them."""

    def __init__(self) -> None:
        self.update_progress: list[tuple[CallCounts, int]] = []
        self.ends: list[StageCalls] = []
        self.calls = CallsOfStage(lambda counts, of: self.update_progress.append((counts, of)), self.ends.append)


@pytest.fixture
def told() -> Told:
    return Told()


def failure(key: str, message: str = "m: gone", status: str = "error") -> Failure:
    return Failure(key, message, 1, status)


def test_reasons_are_the_most_frequent_ones(told: Told) -> None:
    budget = "not sent: the run's max_calls of 3 was reached; last error: m: slow"
    failures = {
        "b": failure("b", "not sent: m: gone"),
        "c": failure("c", "m: odd"),
        "d": failure("d"),
        "e": failure("e", budget, "budget"),
    }
    told.calls.settle("abcde", failures)
    told.calls.end()
    assert told.ends == [StageCalls(CallCounts(1, 3, 1), "2 of them: m: gone", budget.removeprefix("not sent: "))]


def test_the_error_of_the_only_call_is_reported_beside_the_budget_that_it_used_up(told: Told) -> None:
    """3 were left out as the budget ended, 0 failed: why the one call had failed was not told."""
    budget = "not sent: the run's max_calls of 1 was reached"
    messages = {"a": f"{budget}; last error: m: HTTP 500", "b": budget, "c": budget}
    told.calls.settle("abc", {key: failure(key, message, "budget") for key, message in messages.items()})
    assert told.calls.so_far.counts == CallCounts(0, 0, 3)
    assert told.calls.so_far.skip_reason == "the run's max_calls of 1 was reached; last error: m: HTTP 500"


def test_a_request_that_is_settled_again_counts_once(told: Told) -> None:
    told.calls.settle("ab", {"b": failure("b")})
    told.calls.end()
    told.calls.settle("bc", {})
    told.calls.end()
    assert [one.counts for one in told.ends] == [CallCounts(1, 1, 0), CallCounts(3, 0, 0)]


def test_models_that_share_a_name_are_all_counted(told: Told) -> None:
    """The same model at two temperatures has two queues of one name, of which the display shows the last."""
    told.calls.begin(4)
    told.calls.update_progress((ModelProgress("m", 2, 1, 1, 0), ModelProgress("m", 2, 0, 0, 1, 1)))
    assert told.update_progress == [(CallCounts(2, 1, 1), 4)]


def test_what_is_expected_never_shrinks_and_is_never_less_than_what_is_answered(told: Told) -> None:
    told.calls.begin(4)
    for total, done in ((2, 1), (6, 6)):  # moves of games follow from those before
        told.calls.update_progress((ModelProgress("m", total, 0, done, 0),))
    told.calls.settle("abcdef", {})
    told.calls.call_done()
    told.calls.update_progress((ModelProgress("m", 1, 0, 1, 0),))
    assert told.update_progress == [(CallCounts(1, 0, 0), 4), (CallCounts(6, 0, 0), 6), (CallCounts(7, 0, 0), 7)]
