"""What all tests of the API share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import NoPostgres, Postgres, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL of the module's own, which its tests may stop."""
    try:
        with running_postgres() as found:
            yield found
    except NoPostgres as why:
        pytest.skip(f"without PostgreSQL: {why}")


@pytest.fixture(autouse=True)
def _with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server that may ask the models of these providers. Nobody is asked."""
    for provider in ("OPENAI", "ANTHROPIC", "MISTRAL"):
        monkeypatch.setenv(f"{provider}_API_KEY", "no key")
