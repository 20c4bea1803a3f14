"""What all tests of the API share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from fastapi.testclient import TestClient

from resources.evaluations.evaluation_store import Evaluation
from tests.dtef_pipeline.api.asked_runs import ANSWER_AND_BATTERY_COLUMNS
from tests.dtef_pipeline.api.made import client_in
from tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL of the module's own, which its tests may stop."""
    with running_postgres() as found:
        yield found


@pytest.fixture(autouse=True)
def _with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server that may ask the models of these providers. Nobody is asked."""
    for provider in ("OPENAI", "ANTHROPIC", "MISTRAL"):
        monkeypatch.setenv(f"{provider}_API_KEY", "no key")


class AnsweredRun(NamedTuple):
    """An evaluation with rows in its tables, and an operator's client of the API over them, for tests that change neither."""

    folder: Path
    evaluation: Evaluation
    client: TestClient


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], AnsweredRun]]:
    """By family; each is made once."""
    with ExitStack() as stack:

        @cache
        def make(family: str) -> AnsweredRun:
            folder = tmp_path_factory.mktemp(family)
            evaluation = ANSWER_AND_BATTERY_COLUMNS[family](folder)
            return AnsweredRun(folder, evaluation, stack.enter_context(client_in(folder, "operator")))

        yield make
