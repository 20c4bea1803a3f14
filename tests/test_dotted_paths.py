"""Every module path that stands in a file users have keeps working: each is read from where it stands, and imported."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.survey.adapters import adapters

ROOT = Path(__file__).resolve().parent.parent


def document(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def imported(path: str) -> object:
    """What `module` or `module:name` stands for."""
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def custom_classes(value: Any) -> Iterator[str]:
    """`module:class` wherever a YAML document names one."""
    if isinstance(value, dict):
        if {"module", "class"} <= value.keys():
            yield f"{value['module']}:{value['class']}"
        for part in value.values():
            yield from custom_classes(part)


@pytest.mark.parametrize(
    ("file", "paths"),
    [
        ("dagster.yaml", {"assets.run_launcher:WatchedRunLauncher", "resources.dagster_storage:SqliteStorage"}),
        (
            "deploy/dagster.yaml",
            {"assets.run_launcher:WatchedRunLauncher", "resources.dagster_postgres_storage:PostgresStorage"},
        ),
    ],
)
def test_classes_that_a_dagster_home_names_are_where_they_were(file: str, paths: set[str]) -> None:
    """Copies of these files are in every DAGSTER_HOME: what they name cannot move."""
    assert set(custom_classes(document(file))) == paths
    assert all(isinstance(imported(path), type) for path in paths)


def test_the_code_location_is_the_module_that_workspaces_and_services_name() -> None:
    module = document("workspace.yaml")["load_from"][0]["python_module"]["module_name"]
    service = (ROOT / "deploy" / "dtef-code.service").read_text(encoding="utf-8")
    assert re.findall(r"(?<= -m )\S+", service) == [module] == ["assets.definitions"]
    assert hasattr(imported(module), "defs")


def test_entry_points_can_be_loaded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"dtef": "dtef_pipeline.cli:main", "dtef-webserver": "assets.web_server:main"}
    assert all(callable(imported(path)) for path in project["scripts"].values())
    named = project["entry-points"]["dtef.adapters"]
    assert set(named) == {"global-dialogues", "dtef-json", "long-table"}
    assert {type(adapter).__name__ for adapter in adapters()} >= {imported(path).__name__ for path in named.values()}  # type: ignore[attr-defined]


def test_what_the_guide_for_adapters_imports_is_there() -> None:
    guide = (ROOT / "docs" / "how-to" / "add-a-survey.md").read_text(encoding="utf-8")
    lines = re.findall(r"^from (dtef_pipeline\.[\w.]+) import (.+)$", guide, re.MULTILINE)
    assert lines
    for module, names in lines:
        assert [name for name in names.split(", ") if not hasattr(importlib.import_module(module), name)] == []
