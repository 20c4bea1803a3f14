"""What the tests of the response store start with: an empty one at each kind of location, and one more to move responses to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.responses.store import ResponseStore


@pytest.fixture
def store(location: str) -> Iterator[ResponseStore]:
    with ResponseStore(location) as opened:
        yield opened


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[ResponseStore]:
    with ResponseStore(tmp_path / "elsewhere.sqlite") as opened:
        yield opened
