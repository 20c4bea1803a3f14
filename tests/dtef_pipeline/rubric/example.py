"""The scored example that lies beside the checkout: answers, points and vectors, and the scores that follow from them.

Weights are read from the blueprints by code of these tests' own.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.conftest import SHARED as DATA

FOLDER = DATA / "weval"


@functools.cache
def example() -> dict[str, pd.DataFrame]:
    """Its tables. Skips the test where there is none."""
    path = FOLDER / "scored_example.json"
    if not path.exists():
        pytest.skip(f"the scored example is not at {path}")
    tables = json.loads(path.read_text(encoding="utf-8"))
    return {name: pd.DataFrame(table["rows"], columns=table["columns"]) for name, table in tables.items()}


def as_ours(table: pd.DataFrame) -> pd.DataFrame:
    """With the key columns of this project."""
    variant = table["model"].astype(str) + "[temperature=" + table["temperature"].astype(str) + "]"
    return table.rename(columns={"system": "system_index"}).assign(snapshot="s1", draw=0, model_variant=variant)


def points() -> pd.DataFrame:
    """Points with the scores of the example and the weights of the blueprints."""
    place = ["blueprint", "prompt", "block", "path", "position"]
    weights = pd.DataFrame(list(_weights()), columns=[*place, "weight"])
    rows = example()["points"].merge(weights, "left", place, validate="many_to_one")
    return as_ours(rows.assign(partial=False, reason="unreadable"))


def prompts() -> pd.DataFrame:
    """Of every prompt that was asked its weight, and whether it has criteria and an ideal answer."""
    rows = [
        {
            "blueprint": blueprint,
            "prompt": prompt["id"],
            "weight": float(prompt.get("weight", 1)),
            "n_criteria": sum(len(part) for part in _parts(prompt)),
            "has_ideal": bool(prompt.get("ideal")),
        }
        for blueprint, prompt in _prompts()
    ]
    return pd.DataFrame(rows)


def _prompts() -> Iterator[tuple[str, dict[str, Any]]]:
    for blueprint in sorted(set(example()["responses"]["blueprint"])):
        path = FOLDER / "blueprints" / Path(*blueprint.split("__")).with_suffix(".yml")
        _, *parts = yaml.safe_load_all(path.read_text(encoding="utf-8"))
        for part in parts:
            for prompt in part if isinstance(part, list) else [part]:
                yield blueprint, prompt


def _parts(prompt: dict[str, Any]) -> Iterator[list[Any]]:
    """The required criteria of both blocks, and those of each path."""
    for block in ("should", "should_not"):
        entries = prompt.get(block) or []
        yield [entry for entry in entries if not isinstance(entry, list)]
        yield from (entry for entry in entries if isinstance(entry, list))


def _weights() -> Iterator[tuple[str, str, str, float | None, int, float]]:
    for blueprint, prompt in _prompts():
        for block in ("should", "should_not"):
            entries = prompt.get(block) or []
            paths = [entry for entry in entries if isinstance(entry, list)]
            groups = [(None, [entry for entry in entries if not isinstance(entry, list)]), *enumerate(paths)]
            for number, group in groups:
                for position, entry in enumerate(group):
                    weight = float(entry.get("weight", 1)) if isinstance(entry, dict) else 1.0
                    place = position if number is not None else entries.index(entry)
                    yield blueprint, prompt["id"], block, number, place, weight
