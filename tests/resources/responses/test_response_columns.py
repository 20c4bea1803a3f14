"""The columns of stored responses, letter by letter: they follow from `Response`, so a change there must be seen here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from dtef_pipeline.tables import CALL
from resources.responses import database as db
from resources.responses.store import RESPONSES, ResponseStore

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
ARROW = """
    request_key: string; prompt_id: string; model: string; model_variant: string; draw: int32; snapshot: string; text: string;
    finish_reason: string; served_model: string; fingerprint: string; prompt_tokens: int32; completion_tokens: int32;
    cost_usd: double; latency_s: double; attempts: int32; answered_at: timestamp[us, tz=UTC]; reasoning: string; role: string;
    host: string;
    reported_cost_usd: double; cached_tokens: int32; reasoning_tokens: int32; unknown_cost_attempts: int32; unknown_cost_usd_most: double
"""


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_columns_of_the_database_are_those_of_schema_version_2() -> None:
    made = str(sa.schema.CreateTable(db.responses).compile(dialect=postgresql.dialect()))
    assert one_line(made) == f"CREATE TABLE responses ( {one_line(SQL)} )"
    assert db.SCHEMA_VERSION == 2


def test_the_columns_of_tables_and_files_are_those_that_are_written_down() -> None:
    assert [f"{field.name}: {field.type}" for field in RESPONSES] == one_line(ARROW).split("; ")


def test_tables_of_calls_keep_what_they_take_from_a_response_in_its_type() -> None:
    shared = {field.name for field in CALL} & set(RESPONSES.names)
    assert {field.name: field.type for field in CALL if field.name in shared} == {
        name: RESPONSES.field(name).type for name in RESPONSES.names if name in shared
    }
    assert len(shared) == 20


def test_a_store_that_was_made_by_these_very_words_is_read(tmp_path: Path) -> None:
    location = f"sqlite:///{tmp_path}/r.sqlite"
    engine = sa.create_engine(location)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE response_store (schema_version INTEGER NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO response_store VALUES (2)")
        connection.exec_driver_sql(f"CREATE TABLE responses ({EARLIER_SQL})")
        connection.exec_driver_sql("CREATE TABLE claims (request_key VARCHAR(32) PRIMARY KEY, owner VARCHAR(32) NOT NULL)")
        row = "'{}', 'p', 'm', 'v', 0, 'base', '[1]', 'stop', NULL, NULL, 1, 2, 0.5, 0.25, 1, 1767323045678901, NULL, 'judge', NULL"
        connection.exec_driver_sql(f"INSERT INTO responses VALUES ({row.format('a' * 32)})")
    engine.dispose()
    with ResponseStore(location) as store:
        (found,) = store.responses(["a" * 32]).to_pylist()
        assert store.sum_spent("judge", datetime(2026, 1, 1, tzinfo=UTC)) == 0.5
    assert (found["text"], found["cost_usd"], found["role"], found["reported_cost_usd"]) == ("[1]", 0.5, "judge", None)
    assert found["answered_at"].isoformat() == "2026-01-02T03:04:05.678901+00:00"
