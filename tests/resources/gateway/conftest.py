"""What the gateway's tests start with: an empty response store, and a server that answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.gateway import local_model
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_the_local_model() -> Iterator[None]:
    """Two wait for each other in loops: beside other tests that took three to four times as much of the processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_model, "_PROMPT_THREADS", 1)
        yield


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResponseStore]:
    with ResponseStore(tmp_path / "responses.sqlite") as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM() as running:
        yield running
