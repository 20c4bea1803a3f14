"""Dagster's PostgreSQL storage with its connections kept open: the same tables, a handful of connections, no trouble after a restart."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dagster_postgres.event_log import PostgresEventLogStorage

from resources.dagster_postgres_storage import PostgresStorage
from tests.postgres import Postgres
from tests.resources.test_dagster_storage import ASSET, KEYS, instance, made, run_once, seen


def ours(url: str) -> dict[str, Any]:
    return {"module": "resources.dagster_postgres_storage", "class": "PostgresStorage", "config": {"postgres_url": url}}


def plain(url: str) -> dict[str, Any]:
    return {"module": "dagster_postgres", "class": "DagsterPostgresStorage", "config": {"postgres_url": url}}


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "50")
    return postgres.new_database().replace("postgresql+psycopg://", "postgresql+psycopg2://")


def connections_made(url: str) -> int:
    """Connections that the database has seen since it was made, this one included."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_stat_clear_snapshot()"))
        name = sa.engine.make_url(url).database
        return int(
            connection.execute(
                sa.text("SELECT sessions FROM pg_stat_database WHERE datname = :name"), {"name": name}
            ).scalar_one()
        )


def test_a_run_needs_a_handful_of_connections_and_dagsters_own_storage_reads_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with instance(tmp_path / "home", monkeypatch, ours(url)) as opened:
        before = connections_made(url)
        run = run_once(opened)
        by_ours = seen(opened, run)
        assert connections_made(url) - before <= 10
    assert by_ours["partitions"] == dict.fromkeys(KEYS, "MATERIALIZED")
    with instance(tmp_path / "home", monkeypatch, plain(url)) as opened:
        assert type(opened.event_log_storage) is PostgresEventLogStorage
        assert seen(opened, run) == by_ours


def test_a_url_that_names_no_driver_is_taken_for_dagsters_own(url: str) -> None:
    storage = PostgresStorage(url.replace("postgresql+psycopg2://", "postgresql://"))
    storage.event_log_storage.store_event(made("33333333-3333-3333-3333-333333333333", KEYS[0]))
    assert storage.event_log_storage.get_materialized_partitions(ASSET) == {KEYS[0]}
    assert storage.run_storage.get_runs() == []
    assert storage.schedule_storage.all_instigator_state() == []
    for part in (storage.event_log_storage, storage.run_storage, storage.schedule_storage):
        part._engine.dispose()


def test_a_server_that_was_restarted_is_no_error(url: str, postgres: Postgres) -> None:
    storage = PostgresStorage(url)
    run_id = "11111111-1111-1111-1111-111111111111"
    storage.event_log_storage.store_event(made(run_id, KEYS[0]))
    postgres.stop()
    postgres.start()
    storage.event_log_storage.store_event(made(run_id, KEYS[1]))
    assert storage.event_log_storage.get_materialized_partitions(ASSET) == set(KEYS[:2])
    assert storage.run_storage.get_runs() == []
    for part in (storage.event_log_storage, storage.run_storage, storage.schedule_storage):
        part._engine.dispose()
