"""Dagster's PostgreSQL storage with its connections kept open, and planned materializations written together.

Dagster's own connects, and proves who it is, anew for each statement of a run; half of a run's time beyond its work goes there. A connection is
tried before it is used, so a server that was restarted is no error. Named in `deploy/dagster.yaml`; needs the extra `postgres`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dagster import DagsterEventType, EventLogEntry

# The table of events, to have the ids of many rows from one statement. Replaced by: a public batch of planned materializations.
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable

# What a class named in `dagster.yaml` is constructed with. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# Dagster's own storage, whose connections are kept open here (`_engine`, `_connect`) and whose `_store_asset_event` and
# `_store_asset_event_tags` write what belongs to an event. Replaced by: a setting of Dagster that keeps connections.
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import create_pg_engine, get_token_provider_from_config, pg_url_from_config

from resources.dagster_storage import last_of_each


class PostgresEventLog(PostgresEventLogStorage):
    """The event log; the tables are Dagster's own."""

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """As storing each; in an asset's summary row the last event of the asset stands, as it would.

        Dagster's own stores materializations of one asset together, but the planned ones of a run (one per partition and asset) one by one.
        """
        planned = [one for one in events if one.dagster_event_type == DagsterEventType.ASSET_MATERIALIZATION_PLANNED]
        if not planned:
            super().store_event_batch(events)
            return
        for event in events:
            if event.dagster_event_type != DagsterEventType.ASSET_MATERIALIZATION_PLANNED:
                self.store_event(event)
        with self._connect() as connection:
            inserted = self.prepare_insert_event_batch(planned).returning(SqlEventLogStorageTable.c.id)
            ids = [int(key) for (key,) in connection.execute(inserted)]
        with self.index_transaction() as connection:
            self._store_asset_event_tags(connection, planned, ids)
            for place in last_of_each(planned):
                self._store_asset_event(connection, planned[place], ids[place])


class PostgresStorage(DagsterPostgresStorage):
    """All of Dagster's storage in one database: a process keeps a connection each for events, runs and schedules.

    A URL that names no driver is taken for Dagster's own, psycopg2: SQLAlchemy would take the newer one, which Dagster's statements fail on.
    """

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None, **given: Any) -> None:
        postgres_url = _with_driver(postgres_url)
        super().__init__(postgres_url=postgres_url, inst_data=inst_data, **given)
        self._event_log_storage = PostgresEventLog(postgres_url, **given)
        for storage in (self._event_log_storage, self._run_storage, self._schedule_storage):
            storage._engine = create_pg_engine(
                postgres_url,
                given.get("token_provider"),
                isolation_level="AUTOCOMMIT",
                pool_size=1,
                # What threads need beside it for a moment is opened, and closed again, as all connections were.
                max_overflow=-1,
                pool_pre_ping=True,
            )

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> PostgresStorage:
        return cls(
            postgres_url=pg_url_from_config(config_value),
            inst_data=inst_data,
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
            token_provider=get_token_provider_from_config(config_value),
        )


def _with_driver(url: str) -> str:
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
