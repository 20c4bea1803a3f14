"""The rows that docs/qa.md shows are read as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dtef_pipeline.qa.item_files.gsm8k import load_gsm8k
from dtef_pipeline.qa.item_files.humaneval import load_humaneval
from dtef_pipeline.qa.item_files.loaded import LoadedItems
from dtef_pipeline.qa.item_files.mmlu import load_mmlu
from dtef_pipeline.qa.item_files.socioscope import load_socioscope
from tests.conftest import ROOT

READERS: dict[str, tuple[str, Callable[[Path], LoadedItems]]] = {
    "mmlu": ("law_test.csv", load_mmlu),
    "gsm8k": ("test.jsonl", load_gsm8k),
    "humaneval": ("problems.jsonl", load_humaneval),
    "socioscope": ("questions.json", load_socioscope),
}


@pytest.mark.parametrize("suite", READERS)
def test_a_documented_row_is_an_item(suite: str, tmp_path: Path) -> None:
    """Two of the four were left out as they stood: a program that was not whole, and a question without its list."""
    text = (ROOT / "docs" / "qa.md").read_text(encoding="utf-8")
    shown = re.search(rf"^\| `{suite}` \| .*? \| `(.*)` \|$", text, re.MULTILINE)
    assert shown
    name, load = READERS[suite]
    (tmp_path / name).write_text(f"{shown[1]}\n", encoding="utf-8")
    found = load(tmp_path / name)
    assert (len(found.items), found.findings) == (1, ())
