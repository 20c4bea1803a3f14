"""What the gateway's tests start with: an empty response store, and a server that answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResponseStore]:
    with ResponseStore(tmp_path / "responses.sqlite") as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM() as running:
        yield running
