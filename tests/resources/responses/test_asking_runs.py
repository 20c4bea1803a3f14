"""With each response stands the code and configuration that stored it; a store of before that is read as it is."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import sqlalchemy as sa

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.errors import StoreError
from dtef_pipeline.identity import digest
from resources.responses import database as db
from resources.responses.store import ResponseStore, StoredCost
from tests.made.responses import keys, response
from tests.postgres import Postgres


def write_store_without_runs(location: str) -> None:
    """A store as the software left it before it noted code and configuration."""
    with ResponseStore(location) as store:
        store.add([response(1)])
    engine = sa.create_engine(location)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE responses DROP COLUMN run_id")
        connection.exec_driver_sql("DROP TABLE asking_runs")
    engine.dispose()


def test_the_run_is_noted_with_what_it_stores_and_not_with_what_was_there(location: str) -> None:
    """A response that was there already got the run of the first batch that held it again."""
    write_store_without_runs(location)
    runs = [AskingRun("1", "c"), AskingRun("2", "c")]
    for place, run in enumerate(runs):
        with ResponseStore(location, lambda run=run: run) as store:  # type: ignore[misc]
            assert store.add(response(number) for number in (1, 2, 2 + place)) == 1
    with ResponseStore(location) as store:
        noted = sa.select(db.responses.c.request_key, db.responses.c.run_id)
        found = {row.request_key: row.run_id for row in store.database.read(lambda one: one.execute(noted).all())}
    assert found == {digest(1): None, digest(2): runs[0].run_id, digest(3): runs[1].run_id}


def test_what_an_evaluation_asked_for_itself_is_told_from_what_was_there(location: str) -> None:
    """The cost of an evaluation was that of all calls it rests on, also where another run had paid for them."""
    with ResponseStore(location) as store:
        store.add([response(1, cost_usd=8.0)])
    engine = sa.create_engine(location)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE evaluation_responses")
    engine.dispose()
    with ResponseStore(location, queue_id="a" * 32) as store:
        assert store.add([response(1), response(2, cost_usd=0.5), response(3)]) == 2
    with ResponseStore(location, queue_id="b" * 32) as store:
        assert store.add([response(number) for number in (1, 2, 3, 4)]) == 1
        assert store.bought(keys(1, 2, 3, 4, 5), "a" * 32) == StoredCost(2, 20, 10, 0.5, 1)
        assert store.bought(keys(1, 2), "b" * 32) == StoredCost(0, 0, 0, 0.0, 0)
        assert store.bought(keys(4), "b" * 32) == StoredCost(1, 10, 5, None, 1)


def test_who_may_only_read_reads_a_store_of_before_runs_were_noted(postgres: Postgres) -> None:
    write_store_without_runs(location := postgres.new_database())
    with ResponseStore(f"{location}?options=-c%20default_transaction_read_only%3Don") as store:
        assert store.responses(keys(1)).to_pylist() == [asdict(response(1))]
        assert [len(page) for page in store.pages()] == [1]
        with pytest.raises(StoreError, match="read-only transaction"):
            store.add([response(2)])
