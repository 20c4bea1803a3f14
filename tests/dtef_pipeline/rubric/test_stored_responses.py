"""What the demo replays: the shipped file is what the script makes, and nobody can take it for what a model said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from tests.conftest import ROOT

DATA = ROOT / "data"
STORED = DATA / "stored_responses.jsonl"
BLUEPRINT_FILES = sorted((DATA / "blueprints").glob("*.yml"))


def test_the_script_writes_the_shipped_responses_again(tmp_path: Path) -> None:
    path = tmp_path / "again.jsonl"
    subprocess.run([sys.executable, DATA / "make_stored_responses.py", path], check=True, cwd=ROOT, capture_output=True)
    assert path.read_bytes() == STORED.read_bytes(), "stale: run `python data/make_stored_responses.py`"


@pytest.mark.parametrize("path", BLUEPRINT_FILES, ids=lambda path: path.stem)
def test_blueprints_of_the_demo_have_no_findings_and_say_that_they_are_of_stored_responses(path: Path) -> None:
    read = read_blueprint(path, path.stem)
    assert read.findings == ()
    assert read.blueprint is not None
    assert "stored" in read.blueprint.title
    assert "invented" in f"{read.blueprint.title} {read.blueprint.description}"
    assert {model.partition("/")[0] for model in read.blueprint.models} == {"stored"}
    assert {judge.model.partition("/")[0] for judge in read.blueprint.judges} <= {"stored"}


def test_make_demo_asks_nothing_but_the_demo_blueprints() -> None:
    """Without the pattern, a second `make demo` would ask about blueprints that a user added in between."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].partition("\n\n")[0]
    assert re.findall(r"dtef rubric (\w+) (.*)", recipe) == [
        ("add", "data/blueprints"),
        ("run", "--blueprint 'demo-*'"),
        ("board", "--by blueprint --blueprint 'demo-*'"),
    ]
    assert all(path.stem.startswith("demo-") for path in BLUEPRINT_FILES)
