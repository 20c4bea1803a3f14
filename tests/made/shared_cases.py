"""Cases: those beside a test file, and the shared examples of right behaviour and published data, where they lie beside the checkout."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import SHARED


def cases_beside(test_file: str) -> dict[str, Any]:
    """The cases in the TOML, JSON or YAML file beside a test file, by the name of their test or group."""
    read = {".toml": tomllib.loads, ".json": json.loads, ".yaml": yaml.safe_load}
    path = next(path for suffix in read if (path := Path(test_file).with_suffix(suffix)).exists())
    found: dict[str, Any] = read[path.suffix](path.read_text(encoding="utf-8"))
    return found


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


def case_parameters(folder: str, fn: str) -> list[Any]:
    """The cases of one function as parameters of a test, which is skipped where they are not there."""
    if not (path := SHARED / folder / "vectors.json").exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no shared data at {path}"))]
    return [pytest.param(case, id=case["id"]) for case in cases(folder, fn)]


def json_rows(place: str) -> list[dict[str, Any]]:
    """The rows of a shared JSONL file. Skips the test where it is not there."""
    return [json.loads(line) for line in shared(place).read_text(encoding="utf-8").splitlines()]
