"""Cases: those beside a test file, and the shared examples of right behaviour and published data, where they lie beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import SHARED


def shared(place: str) -> Path:
    """A file or folder of the shared data. Skips the test where it is not there."""
    if not (path := SHARED / place).exists():
        pytest.skip(f"no shared data at {path}")
    return path


def cases(folder: str, fn: str) -> list[dict[str, Any]]:
    """The cases of one function in `benchmarks`, `transcripts` or `votes`. Skips the test where they are not there."""
    path = shared(f"{folder}/vectors.json")
    found = [case for case in json.loads(path.read_text(encoding="utf-8"))["cases"] if case["fn"] == fn]
    assert found, f"{path} has no case of {fn}"
    return found


def load_cases(test_file: str) -> dict[str, Any]:
    """The cases of a test file in the YAML file beside it, by group."""
    found: dict[str, Any] = yaml.safe_load(Path(test_file).with_suffix(".yaml").read_text(encoding="utf-8"))
    return found


def json_rows(place: str) -> list[dict[str, Any]]:
    """The rows of a shared JSONL file. Skips the test where it is not there."""
    return [json.loads(line) for line in shared(place).read_text(encoding="utf-8").splitlines()]
