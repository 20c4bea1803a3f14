"""A state on servers: the warehouse in an object store, responses and Dagster in PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.postgres import running_postgres
from tests.s3_server import running


@contextmanager
def state_on_servers(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of such a state for the time of the block; the folder is for the rest. Skips the test without PostgreSQL."""
    with running_postgres() as postgres, running(folder / "requests.jsonl", "dtef") as s3:
        patch.setenv("DTEF_WAREHOUSE", s3.url("dtef/warehouse"))
        patch.setenv("DTEF_RESPONSES", postgres.new_database())
        patch.setenv("DAGSTER_POSTGRES_URL", postgres.new_database().replace("+psycopg:", "+psycopg2:"))
        for name in ("DTEF_MODELS", "DTEF_PANEL", "DTEF_WEBHOOK"):
            patch.delenv(name, raising=False)
        yield


def move_to(machine: Path, patch: pytest.MonkeyPatch) -> None:
    """Begin what follows in this folder as the home of Dagster on a machine."""
    if not machine.exists():
        machine.mkdir()
        shutil.copyfile(ROOT / "deploy" / "dagster.yaml", machine / "dagster.yaml")
    patch.setenv("DAGSTER_HOME", str(machine))
