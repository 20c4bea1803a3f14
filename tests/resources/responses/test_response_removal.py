"""Responses that are forgotten are asked again in the same snapshot; what they cost, and what calls without a response cost, was spent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dtef_pipeline.asking.request import UnansweredCall
from resources.responses.response_removal import (
    RemovedCost,
    ResponseSelection,
    UnansweredCost,
    remove_responses_by_key,
    select_response_keys,
    sum_removed_cost,
)
from resources.responses.store import ResponseStore
from tests.made.responses import response
from tests.resources.responses.test_store import write_earlier_store

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
STORED = (
    response(1, text="", cost_usd=0.5, answered_at=NOON),
    response(2, text=" \n\t", model="other", model_variant="other[t=0]", cost_usd=None, answered_at=NOON),
    response(3, text="[60, 4", finish_reason="length", cost_usd=0.25, answered_at=NOON + timedelta(days=1)),
    response(4, text="[60, 40]", cost_usd=0.125, answered_at=NOON + timedelta(days=2)),
)
KEY = {number: one.request_key for number, one in enumerate(STORED, 1)}


@pytest.fixture
def filled(store: ResponseStore) -> ResponseStore:
    store.add(STORED)
    return store


CHOSEN = [
    (ResponseSelection(empty=True), {1, 2}),
    (ResponseSelection(truncated=True), {3}),
    (ResponseSelection(empty=True, truncated=True), {1, 2, 3}),
    (ResponseSelection(empty=True, models=("other",)), {2}),
    (ResponseSelection(models=("other[t=0]",)), {2}),
    (ResponseSelection(snapshots=("none",)), set()),
    (ResponseSelection(since=NOON + timedelta(hours=1)), {3, 4}),
    (ResponseSelection(since=NOON, before=NOON + timedelta(days=2)), {1, 2, 3}),
]


def test_responses_are_chosen_by_all_that_is_given(filled: ResponseStore) -> None:
    for which, numbers in CHOSEN:
        assert select_response_keys(filled.database, which) == sorted(KEY[one] for one in numbers), which


def test_what_is_forgotten_is_asked_again_and_its_cost_stays(filled: ResponseStore) -> None:
    spent = filled.sum_spent("candidate", NOON)
    assert remove_responses_by_key(filled.database, [KEY[1], KEY[2], "0" * 32]) == 2
    assert filled.find_known_keys(KEY.values()) == {KEY[3], KEY[4]}
    assert sum_removed_cost(filled.database) == RemovedCost(2, 0.5)
    assert filled.sum_spent("candidate", NOON) == pytest.approx(spent)
    again = response(1, text="[1, 99]", cost_usd=0.25, answered_at=NOON + timedelta(days=3))
    assert filled.add([again]) == 1
    (row,) = filled.responses([KEY[1]]).to_pylist()
    assert (row["text"], row["cost_usd"]) == ("[1, 99]", pytest.approx(0.75))
    assert remove_responses_by_key(filled.database, [KEY[1]]) == 1
    assert sum_removed_cost(filled.database).cost_usd == pytest.approx(0.75)


def test_costs_that_are_not_known_stay_unknown(filled: ResponseStore) -> None:
    remove_responses_by_key(filled.database, [KEY[1]])
    filled.add([response(1, cost_usd=None)])
    assert filled.responses([KEY[1], KEY[4]])["cost_usd"].to_pylist() == [None, 0.125]


def test_a_store_of_before_is_read(filled: ResponseStore) -> None:
    filled.database.write(lambda connection: connection.exec_driver_sql("DROP TABLE forgotten_responses"))
    assert len(filled.responses(KEY.values())) == len(STORED)
    assert sum_removed_cost(filled.database) == RemovedCost(0, 0.0)


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lost(number: int, cost: float | None, most: float | None, at: datetime = NOON) -> UnansweredCall:
    return UnansweredCall(response(number).request_key, "candidate", at, cost, most)


def test_what_was_lost_goes_into_the_response_and_counts_once(location: str) -> None:
    key, other = response(0).request_key, response(1).request_key
    with ResponseStore(location) as store:
        assert store.failure_costs([key]) == {}
        store.add_unanswered([lost(0, 0.5, None), lost(0, None, 2.0), lost(0, None, 4.0), lost(1, None, None)])
        assert store.failure_costs([key, other, "nobody"]) == {
            key: UnansweredCost(0.5, 2, 6.0),
            other: UnansweredCost(None, 1, None),
        }
        assert store.sum_spent("candidate", NOON) == pytest.approx(6.5)
        store.add([response(0, cost_usd=0.25, unknown_cost_attempts=1, unknown_cost_usd_most=1.0, answered_at=NOON)])
        (row,) = store.responses([key]).to_pylist()
        assert store.sum_spent("candidate", NOON) == pytest.approx(7.75)
        assert store.sum_spent("judge", NOON) == 0
    kept = [row[name] for name in ("cost_usd", "unknown_cost_attempts", "unknown_cost_usd_most")]
    assert kept == [pytest.approx(0.75), 3, pytest.approx(7.0)]


def test_unknown_costs_of_some_requests_are_those_of_all_that_are_theirs(location: str) -> None:
    """The cost of one run read the whole store."""
    with ResponseStore(location) as store:
        store.add_unanswered([lost(0, None, 2.0), lost(1, None, 4.0), lost(2, 0.5, None)])
        store.add([response(0, unknown_cost_attempts=1, unknown_cost_usd_most=1.0), response(3)])
        every = {row["request_key"]: row for row in store.unknown_costs().to_pylist()}
        first, second = (response(number).request_key for number in range(2))
        assert {key: row["unknown_cost_attempts"] for key, row in every.items()} == {first: 2, second: 1}
        assert [row["unknown_cost_usd_most"] for row in every.values()] == pytest.approx(
            [3.0, 4.0] if first < second else [4.0, 3.0]
        )
        for key in (first, second):
            assert store.unknown_costs([key]).to_pylist() == [every[key]]
        assert store.unknown_costs(["nobody", response(3).request_key]).num_rows == 0


def test_a_store_of_before_gets_the_columns_and_the_table(location: str) -> None:
    write_earlier_store(location)
    with ResponseStore(location) as store:
        store.add_unanswered([lost(0, None, 2.0)])
        assert store.add([response(0, answered_at=NOON, cost_usd=None)]) == 1
        (old,) = store.responses(["a" * 32]).to_pylist()
        (new,) = store.responses([response(0).request_key]).to_pylist()
    assert (old["text"], old["role"], old["answered_at"].isoformat()) == ("[1]", "judge", "2026-01-02T03:04:05.678901+00:00")
    assert (old["cost_usd"], old["unknown_cost_attempts"], old["cached_tokens"]) == (0.5, None, None)
    assert (new["cost_usd"], new["unknown_cost_attempts"], new["unknown_cost_usd_most"]) == (None, 1, 2.0)
