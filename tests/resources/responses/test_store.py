"""The response store: a response comes back as it was, an answer is never written over, and what was forgotten was still spent."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from dtef_pipeline.asking.request import AskingRun, UnansweredCall
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import CALL
from resources.responses import database as db
from resources.responses.database import SCHEMA_VERSION
from resources.responses.store import (
    RESPONSES,
    CostInStore,
    RemovedCost,
    ResponseSelection,
    ResponseStore,
    UnansweredCost,
    remove_responses_by_key,
    select_response_keys,
    sum_removed_cost,
)
from tests.made.responses import keys, response, stored
from tests.postgres import Postgres
from tests.resources import forked


def test_a_response_comes_back_as_it_was_in_the_order_of_the_keys(store: ResponseStore) -> None:
    kept = [response(1), response(2, text="ü\n😀", cost_usd=0.125, finish_reason=None, prompt_tokens=None), response(3)]
    store.add(kept)
    table = store.responses(keys(3, 9, 2, 3, 1))
    assert table.schema == RESPONSES
    assert table.to_pylist() == [asdict(kept[i]) for i in (2, 1, 0)]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "the response store {} is a folder; name a file in DTEF_RESPONSES"),
        (
            "/proc/nope",
            "cannot open the response store sqlite:///{}: No such file or directory; choose another place with DTEF_RESPONSES",
        ),
    ],
)
def test_a_place_that_can_be_no_store_is_refused_with_the_systems_reason(tmp_path: Path, place: str, said: str) -> None:
    """SQLite said "unable to open database file" of each, and the remedy was one for a full disk."""
    with pytest.raises(StoreError) as caught:
        ResponseStore(place or tmp_path)
    assert str(caught.value) == said.format(place or tmp_path)


def test_a_path_is_an_sqlite_file_whose_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "responses.sqlite"
    with ResponseStore(path) as store:
        store.add([response(1)])
        assert store.database.size() > path.stat().st_size > 0


def test_an_answer_is_never_written_over(store: ResponseStore) -> None:
    assert store.add([response(1, text="first")]) == 1
    assert store.add([response(1, text="second"), response(2)]) == 1
    assert store.add([response(1, text="third")]) == 0
    assert store.responses(keys(1))["text"].to_pylist() == ["first"]
    assert stored(store) == 2


def test_known_keys_are_those_with_an_answer_across_chunks(store: ResponseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "_CHUNK", 50)
    store.add(response(number) for number in range(0, 120, 2))
    assert store.find_known_keys(keys(*range(120))) == set(keys(*range(0, 120, 2)))
    assert store.responses(keys(*range(120))).num_rows == 60


def test_text_no_database_takes_is_kept_with_replacement_characters(store: ResponseStore) -> None:
    store.add([response(1, text="a\0b\ud800c 😀")])
    assert store.responses(keys(1))["text"].to_pylist() == ["a\ufffdb\ufffdc 😀"]


def test_threads_write_at_once(store: ResponseStore) -> None:
    def write(start: int) -> None:
        for number in range(start, start + 20):
            store.add([response(number)])

    threads = [threading.Thread(target=write, args=(10 * worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(store) == 70


def _fill(location: str, start: int) -> None:
    with ResponseStore(location) as store:
        for number in range(start, start + 20):
            store.add([response(number)])


def run_at_once(target: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    context = forked.context()
    processes = [context.Process(target=target, args=given) for given in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def _fill_with_batches(location: str, order: int) -> None:
    with ResponseStore(location) as store:
        for start in range(0, 300, 60):
            store.add([response(number) for number in range(start, start + 60)][::order])


def test_opening_waits_for_a_run_that_is_making_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change to SQLite's write-ahead log fails at once beside a writer, however patient the connection is."""
    path = tmp_path / "responses.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waited: list[float] = []

        def other_ends(seconds: float) -> None:
            waited.append(seconds)
            other.execute("COMMIT")

        monkeypatch.setattr("resources.responses.database.time.sleep", other_ends)
        with ResponseStore(path) as store:
            assert stored(store) == 0
    assert len(waited) == 1


def test_processes_that_write_the_same_answers_in_other_orders_do_not_block_each_other(location: str) -> None:
    run_at_once(_fill_with_batches, [(location, order) for order in (1, -1, 1)])
    with ResponseStore(location) as store:
        assert stored(store) == 300


def test_summary_of_some_keys_adds_up_these_alone_and_of_all_keys_is_the_whole(store: ResponseStore) -> None:
    given = [
        response(
            number,
            role="judge" if number % 3 else "candidate",
            cost_usd=0.5 if number % 2 else None,
            snapshot=f"s{number % 2}",
        )
        for number in range(30)
    ]
    store.add(given)
    every = [one.request_key for one in given]
    assert store.summary([*every, *every, "unknown"]).to_pylist() == store.summary().to_pylist()
    (row,) = store.summary(every[1:2]).to_pylist()
    assert (row["role"], row["responses"], row["cost_usd"], row["prompt_tokens"]) == ("judge", 1, 0.5, 10)
    assert store.summary([]).to_pylist() == []


def test_processes_that_open_an_earlier_store_at_once_bring_it_up_to_date_once(location: str) -> None:
    write_earlier_store(location)
    run_at_once(_fill, [(location, 100), (location, 200), (location, 300)])
    with ResponseStore(location) as store:
        assert stored(store) == 61
        versions = store.database.read(lambda connection: connection.execute(sa.select(db.versions)).all())
        assert [tuple(row) for row in versions] == [(SCHEMA_VERSION,)]


def test_a_store_of_a_newer_version_is_refused(location: str) -> None:
    with ResponseStore(location) as store:
        newer = sa.update(db.versions).values(schema_version=SCHEMA_VERSION + 1)
        store.database.write(lambda connection: connection.execute(newer))
    with pytest.raises(StoreError, match=rf"newer dtef-pipeline \(schema version {SCHEMA_VERSION + 1}; this one knows"):
        ResponseStore(location)


def test_a_postgresql_server_that_restarts_is_waited_for(postgres: Postgres) -> None:
    with ResponseStore(postgres.new_database()) as store:
        store.add([response(1)])
        postgres.stop()
        restart = threading.Timer(1.0, postgres.start)
        restart.start()
        store.add([response(2)])
        restart.join()
        postgres.stop()
        postgres.start()
        assert store.find_known_keys(keys(1, 2, 3)) == set(keys(1, 2))


def test_a_postgresql_server_that_stays_away_is_an_error(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with ResponseStore(postgres.new_database()) as store:
        monkeypatch.setattr(store.database, "_patience_s", 1.0)
        postgres.stop()
        try:
            with pytest.raises(StoreError, match=r"cannot write to the response store postgresql\+psycopg://dtef:\*\*\*@"):
                store.add([response(1)])
        finally:
            postgres.start()
        assert stored(store) == 0


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/db", "no support for 'mysql'; allowed: sqlite, postgresql"),
        ("sqlite://", "in memory forgets"),
        ("://", "not readable; write a file"),
    ],
)
def test_an_unusable_url_is_a_config_error_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ResponseStore(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StoreError, match=r"cannot open the response store postgresql\+psycopg://u:\*\*\*@") as caught:
        ResponseStore("postgresql://u:secret@127.0.0.1:1/db?connect_timeout=2")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


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


def test_what_an_evaluation_asked_for_itself_is_reported_from_what_was_there(location: str) -> None:
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
        assert store.sum_call_costs(keys(1, 2, 3, 4, 5), "a" * 32) == CostInStore(2, 20, 10, 0.5, 1)
        assert store.sum_call_costs(keys(1, 2), "b" * 32) == CostInStore(0, 0, 0, 0.0, 0)
        assert store.sum_call_costs(keys(4), "b" * 32) == CostInStore(1, 10, 5, None, 1)


def test_a_plain_postgresql_url_is_enough(postgres: Postgres) -> None:
    with ResponseStore(postgres.new_database().replace("postgresql+psycopg://", "postgresql://")) as store:
        assert stored(store) == 0
        assert store.name.startswith("postgresql+psycopg://dtef:***@127.0.0.1:")


# As it was before costs were kept in detail.
EARLIER_SQL = """
    request_key VARCHAR(32) NOT NULL, prompt_id VARCHAR(32) NOT NULL, model TEXT NOT NULL, model_variant TEXT NOT NULL,
    draw INTEGER NOT NULL, snapshot TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, served_model TEXT, fingerprint TEXT,
    prompt_tokens INTEGER, completion_tokens INTEGER, cost_usd DOUBLE PRECISION, latency_s DOUBLE PRECISION NOT NULL,
    attempts INTEGER NOT NULL, answered_at BIGINT NOT NULL, reasoning TEXT, role TEXT DEFAULT 'candidate' NOT NULL,
    run_id VARCHAR(32), PRIMARY KEY (request_key)
"""
SQL = EARLIER_SQL.replace(
    "run_id",
    "host TEXT, reported_cost_usd DOUBLE PRECISION, cached_tokens INTEGER, reasoning_tokens INTEGER, "
    "unknown_cost_attempts INTEGER, unknown_cost_usd_most DOUBLE PRECISION, run_id",
)


def write_earlier_store(location: str) -> None:
    """A store with one response, as the software left it before costs were kept in detail."""
    engine = sa.create_engine(location)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE response_store (schema_version INTEGER NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO response_store VALUES (2)")
        connection.exec_driver_sql(f"CREATE TABLE responses ({EARLIER_SQL})")
        row = "'{}', 'p', 'm', 'v', 0, 'base', '[1]', 'stop', NULL, NULL, 1, 2, 0.5, 0.25, 1, 1767323045678901, NULL, 'judge', NULL"
        connection.exec_driver_sql(f"INSERT INTO responses VALUES ({row.format('a' * 32)})")
    engine.dispose()


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_columns_of_the_database_are_those_of_schema_version_2() -> None:
    made = str(sa.schema.CreateTable(db.responses).compile(dialect=postgresql.dialect()))
    assert one_line(made) == f"CREATE TABLE responses ( {one_line(SQL)} )"
    assert db.SCHEMA_VERSION == 2


def test_tables_of_calls_keep_what_they_take_from_a_response_in_its_type() -> None:
    shared = {field.name for field in CALL} & set(RESPONSES.names)
    assert {field.name: field.type for field in CALL if field.name in shared} == {
        name: RESPONSES.field(name).type for name in RESPONSES.names if name in shared
    }
    assert len(shared) == 17


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


def lost(number: int, cost: float | None, most: float | None, at: datetime = NOON) -> UnansweredCall:
    return UnansweredCall(response(number).request_key, "candidate", at, cost, most)


def test_what_was_lost_goes_into_the_response_and_counts_once(store: ResponseStore) -> None:
    key, other = response(0).request_key, response(1).request_key
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


def test_unknown_costs_of_some_requests_are_those_of_all_that_are_theirs(store: ResponseStore) -> None:
    """The cost of one run read the whole store."""
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
