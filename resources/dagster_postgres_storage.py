"""Dagster's PostgreSQL storage with persistent connections. Named in `deploy/dagster.yaml`; needs the extra `postgres`.

Dagster's own connects and authenticates for each statement of a run. A connection is tested before use, so a restarted server causes no
error.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa

# The table of pools. Replaced by: a release of Dagster in which `EventLog` below is not needed.
from dagster._core.storage.event_log.schema import ConcurrencyLimitsTable

# Constructor argument of classes named in `dagster.yaml`. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# `_allocate_concurrency_slots` adjusts a pool's slots. Replaced by: the same release.
from dagster_postgres.event_log import PostgresEventLogStorage

# `_engine` of each part opens the connections. Replaced by: a setting of Dagster that keeps connections.
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import create_pg_engine, get_token_provider_from_config, pg_url_from_config
from sqlalchemy.dialects.postgresql import insert


class EventLog(PostgresEventLogStorage):
    """The event log, in which several runs may create the same pool at once."""

    def initialize_concurrency_limit_to_default(self, concurrency_key: str) -> bool:
        """Give a pool the default limit, and create it if it is new. Return whether there are limits.

        Dagster's own updates the pool in the transaction in which its insertion failed, which PostgreSQL refuses.
        """
        limit = self._instance.global_op_concurrency_default_limit
        if limit is None:
            return super().initialize_concurrency_limit_to_default(concurrency_key)
        pools = ConcurrencyLimitsTable.c
        row = insert(ConcurrencyLimitsTable).values(concurrency_key=concurrency_key, limit=limit, using_default_limit=True)
        is_default = pools.using_default_limit == sa.true()
        upsert = row.on_conflict_do_update(index_elements=[pools.concurrency_key], set_={"limit": limit}, where=is_default)
        with self.index_transaction() as connection:
            if connection.execute(upsert).rowcount:
                self._allocate_concurrency_slots(connection, concurrency_key, limit)
        return True


class PostgresStorage(DagsterPostgresStorage):
    """All of Dagster's storage in one database: a process keeps one connection each for events, runs and schedules.

    A URL without a driver uses Dagster's own, psycopg2; SQLAlchemy would choose the newer one, with which Dagster's statements fail.
    """

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None, **options: Any) -> None:
        postgres_url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", postgres_url)
        super().__init__(postgres_url=postgres_url, inst_data=inst_data, **options)
        token_provider = options.get("token_provider")
        # The tables were created above, if they were missing.
        self._event_log_storage = EventLog(postgres_url, should_autocreate_tables=False, token_provider=token_provider)
        for storage in (self._event_log_storage, self._run_storage, self._schedule_storage):
            storage._engine = create_pg_engine(
                postgres_url,
                token_provider,
                isolation_level="AUTOCOMMIT",
                pool_size=1,
                # Further connections of threads are opened and closed each time, as all connections were before.
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
