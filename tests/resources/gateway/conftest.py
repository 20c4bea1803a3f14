"""What the gateway's tests start with: an empty response store, and a server that answers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.gateway import local_model
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM


@pytest.fixture(scope="session", autouse=True)
def one_local_model_in_one_thread() -> Iterator[None]:
    """Loaded once, with a small context. Two threads wait for each other in loops, at three to four times the work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_model, "_PROMPT_THREADS", 1)
        patch.setattr(local_model, "_CONTEXT_TOKENS", 256)
        patch.setattr(local_model, "_load", functools.cache(local_model._load))
        yield


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResponseStore]:
    with ResponseStore(tmp_path / "responses.sqlite") as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM() as running:
        yield running
