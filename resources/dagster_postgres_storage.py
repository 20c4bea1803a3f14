"""Dagster's PostgreSQL storage with persistent connections. Named in `deploy/dagster.yaml`; needs the extra `postgres`.

Dagster's own connects and authenticates for each statement of a run. A connection is tested before use, so a restarted server causes no
error.
"""

from __future__ import annotations

import re
from typing import Any

# Constructor argument of classes named in `dagster.yaml`. Replaced by: the same name in `dagster`.
from dagster._serdes import ConfigurableClassData

# `_engine` of each part opens the connections. Replaced by: a setting of Dagster that keeps connections.
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import create_pg_engine, get_token_provider_from_config, pg_url_from_config


class PostgresStorage(DagsterPostgresStorage):
    """All of Dagster's storage in one database: a process keeps one connection each for events, runs and schedules.

    A URL without a driver uses Dagster's own, psycopg2; SQLAlchemy would choose the newer one, with which Dagster's statements fail.
    """

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None, **options: Any) -> None:
        postgres_url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", postgres_url)
        super().__init__(postgres_url=postgres_url, inst_data=inst_data, **options)
        for storage in (self._event_log_storage, self._run_storage, self._schedule_storage):
            storage._engine = create_pg_engine(
                postgres_url,
                options.get("token_provider"),
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
