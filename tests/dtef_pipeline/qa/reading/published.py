"""The published items and replies that lie beside the checkout; tests that need them are skipped without."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import SHARED

BENCHMARKS = SHARED / "benchmarks"


def json_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a JSONL file of the published benchmarks."""
    if not BENCHMARKS.is_dir():
        pytest.skip(f"no published benchmarks at {BENCHMARKS}")
    return [json.loads(line) for line in (BENCHMARKS / name).read_text(encoding="utf-8").splitlines()]


def vectors(**wanted: object) -> list[dict[str, Any]]:
    """The cases of vectors.json whose input has these members; `fn` is the function."""
    if not BENCHMARKS.is_dir():
        pytest.skip(f"no published benchmarks at {BENCHMARKS}")
    cases: list[dict[str, Any]] = json.loads((BENCHMARKS / "vectors.json").read_text(encoding="utf-8"))["cases"]
    return [case for case in cases if all({"fn": case["fn"], **case["in"]}.get(key) == value for key, value in wanted.items())]
