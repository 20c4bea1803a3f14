"""Where a response store can be: each test that takes `location` runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a response store that is not made yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/responses.sqlite"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def sqlite_location(tmp_path: Path) -> str:
    """As `location`, for what has nothing to do with the kind of database."""
    return f"sqlite:///{tmp_path}/responses.sqlite"
