"""Models by name and by collection, each once, as litellm writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.blueprint.findings import FindingLog
from dtef_pipeline.rubric.blueprint.named_models import Collections, read_collections, read_models
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)

COLLECTIONS = {"CORE": ("openai:a", "google:b"), "EMPTY": (), "BOTH": ("CORE", "xai:c"), "LOOP": ("LOOP",)}


def read(models: Any, collections: Collections | None = COLLECTIONS) -> tuple[tuple[str, ...], list[str]]:
    log = FindingLog()
    names = read_models({} if models is None else {"models": models}, collections, log)
    assert all(found.place == "header" for found in log.findings)
    return names, [found.code for found in log.findings]


@pytest.mark.parametrize(("models", "names", "found"), CASES["models"])
def test_named_models(models: object, names: list[str], found: list[str]) -> None:
    assert read(models) == (tuple(names), found)


@pytest.mark.parametrize(("models", "names", "found"), CASES["without_a_folder"])
def test_without_a_folder_a_collection_is_not_called_unknown(models: object, names: list[str], found: list[str]) -> None:
    """A file without models could not be added, although the run would have named some."""
    assert read(models, None) == (tuple(names), found)


def test_model_with_an_address_is_refused_with_what_to_write_in_its_place() -> None:
    log = FindingLog()
    model = {"id": "custom:mine", "url": "http://gpu:8000/v1/chat/completions", "modelName": "llama", "inherit": "openai"}
    assert read_models({"models": [model]}, {}, log) == ()
    (found,) = log.findings
    assert found.code == "custom-model"
    assert "{models: {mine: {model: openai/llama, api_base: http://gpu:8000/v1}}}" in found.text
    assert "--model mine" in found.text


def test_folder_of_collections_is_read_by_file_name(tmp_path: Path) -> None:
    (tmp_path / "CORE.json").write_text(json.dumps(["openai:a"]))
    (tmp_path / "MINE.yml").write_text("- openai:b\n- CORE\n")
    (tmp_path / "NONE.yaml").write_text("")
    (tmp_path / "README.md").write_text("# not one")
    assert read_collections(tmp_path) == {"CORE": ("openai:a",), "MINE": ("openai:b", "CORE"), "NONE": ()}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("A.json", "{", r"A\.json:1: not a readable"),
        ("A.json", "{}", "allowed: a list"),
        ("A.yml", "- 5", "got \\[5\\]"),
        ("A.yml", "- a: b: c", "A.yml:1"),
    ],
)
def test_collection_that_is_no_list_of_texts_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_collections(tmp_path)
