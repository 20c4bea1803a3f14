"""`dtef rubric anchors`: what it refuses before anything runs. What it asks is in `tests/assets/rubric/test_labels.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dtef_pipeline.rubric.blueprint_rows import blueprint_tables
from dtef_pipeline.rubric.reading import read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_SCORES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import refused, use

LETTER = """
title: Letter
models: ["openai:cand-a"]
---
- id: hello
  prompt: Say hello.
  should: [It greets.]
"""


@pytest.fixture
def scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A blueprint with scores and a criterion in words, which names no judge; nor does any models file."""
    use(tmp_path, monkeypatch)
    (tmp_path / "letter.yml").write_text(LETTER, encoding="utf-8")
    read = read_blueprint(tmp_path / "letter.yml", "letter")
    assert read.blueprint is not None
    house = Warehouse(tmp_path / "warehouse")
    for table, rows in blueprint_tables(read, read.blueprint, "letter.yml")._asdict().items():
        house.write(table, rows, blueprint="letter")
    house.write("rubric_scores", RUBRIC_SCORES.empty_table(), blueprint="letter", snapshot="base")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--n", 3], "error: nobody is named who judges"),
        (["--judge", "lenient=openai/j"], "one of standard, prompt-aware, holistic"),
        (["--judge", "standard=openai/j", "--max-calls", "opnai/j=1"], "a role or a model of this run: openai/j, "),
        (["--judge", "standard=openai/j", "--max-calls", "judge=x"], "a whole number from 0"),
        (["--judge", "standard=openai/j", "--snapshot", "../x"], "snapshot"),
    ],
)
def test_options_that_need_mending_are_told_before_anything_runs(given: list[object], told: str, scored: Path) -> None:
    assert told in refused("rubric", "anchors", *given)
    assert not (scored / "responses.sqlite").exists()


def test_without_a_score_there_is_nothing_to_judge_again(scored: Path) -> None:
    shutil.rmtree(scored / "warehouse" / "rubric_scores")
    assert "nothing to judge again" in refused("rubric", "anchors", "--judge", "standard=openai/j")
