"""The shared examples of right behaviour, where they lie beside the checkout."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import SHARED


def cases(folder: str, fn: str) -> list[dict[str, Any]]:
    """The cases of one function in `benchmarks` or `transcripts`. Skips the test where they are not there."""
    path = SHARED / folder / "vectors.json"
    if not path.is_file():
        pytest.skip(f"the shared examples are not at {path}")
    found = [case for case in json.loads(path.read_text(encoding="utf-8"))["cases"] if case["fn"] == fn]
    assert found, f"{path} has no case of {fn}"
    return found
