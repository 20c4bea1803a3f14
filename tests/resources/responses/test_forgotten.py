"""Bad responses can be forgotten, so that they are asked again in the same snapshot; what they cost was spent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from resources.responses.forgotten import ChosenResponses, ForgottenCost, chosen_keys, forget, forgotten_cost
from resources.responses.store import ResponseStore
from tests.made.responses import response

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


@pytest.mark.parametrize(
    ("which", "numbers"),
    [
        (ChosenResponses(empty=True), {1, 2}),
        (ChosenResponses(truncated=True), {3}),
        (ChosenResponses(empty=True, truncated=True), {1, 2, 3}),
        (ChosenResponses(empty=True, models=("other",)), {2}),
        (ChosenResponses(models=("other[t=0]",)), {2}),
        (ChosenResponses(snapshots=("none",)), set()),
        (ChosenResponses(since=NOON + timedelta(hours=1)), {3, 4}),
        (ChosenResponses(since=NOON, before=NOON + timedelta(days=2)), {1, 2, 3}),
    ],
)
def test_responses_are_chosen_by_all_that_is_given(filled: ResponseStore, which: ChosenResponses, numbers: set[int]) -> None:
    assert chosen_keys(filled.database, which) == sorted(KEY[one] for one in numbers)


def test_what_is_forgotten_is_asked_again_and_its_cost_stays(filled: ResponseStore) -> None:
    spent = filled.spent("candidate", NOON)
    assert forget(filled.database, [KEY[1], KEY[2], "0" * 32]) == 2
    assert filled.known(KEY.values()) == {KEY[3], KEY[4]}
    assert forgotten_cost(filled.database) == ForgottenCost(2, 0.5)
    assert filled.spent("candidate", NOON) == pytest.approx(spent)
    again = response(1, text="[1, 99]", cost_usd=0.25, answered_at=NOON + timedelta(days=3))
    assert filled.add([again]) == 1
    (row,) = filled.responses([KEY[1]]).to_pylist()
    assert (row["text"], row["cost_usd"]) == ("[1, 99]", pytest.approx(0.75))
    assert forget(filled.database, [KEY[1]]) == 1
    assert forgotten_cost(filled.database).cost_usd == pytest.approx(0.75)


def test_costs_that_are_not_known_stay_unknown(filled: ResponseStore) -> None:
    forget(filled.database, [KEY[1]])
    filled.add([response(1, cost_usd=None)])
    assert filled.responses([KEY[1], KEY[4]])["cost_usd"].to_pylist() == [None, 0.125]


def test_a_store_of_before_is_read(filled: ResponseStore) -> None:
    filled.database.write(lambda connection: connection.exec_driver_sql("DROP TABLE forgotten_responses"))
    assert len(filled.responses(KEY.values())) == len(STORED)
    assert forgotten_cost(filled.database) == ForgottenCost(0, 0.0)
