"""What the demo replays of its questions: an answer for everything that is asked, and nothing that nobody asks for."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType
from typing import Any

import pytest

from dtef_pipeline.qa.item_files.suite_files import read_added
from dtef_pipeline.qa.suites import load_suites
from tests.conftest import ROOT

STORED_ANSWERS = ROOT / "data" / "stored_answers.jsonl"
RECIPE = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].partition("\n\n")[0]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_stored_answers", ROOT / "data" / "make_stored_answers.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    with STORED_ANSWERS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_what_the_demo_asks_and_does_not_have_answered_live_is_stored(
    script: ModuleType, answers: list[dict[str, Any]]
) -> None:
    asked = [request.key for sample in script.SAMPLES for request in script.replayed_requests(sample)]
    assert len(asked) == len(set(asked)) == 74
    assert sorted(asked) == [row["request_key"] for row in answers], "stale: run `python data/make_stored_answers.py`"


def test_samples_are_twenty_items_each_which_are_read_without_a_finding(script: ModuleType) -> None:
    folder = ROOT / "data" / "questions"
    suites = load_suites(folder / "suites.yaml")
    for one in script.SAMPLES:
        corpus = folder / one.corpus if one.corpus else None
        read = read_added(suites.route(one.suite), folder / one.path, corpus).loaded
        assert (len(read.items), read.findings) == (20, ())


def test_stored_answers_are_small_and_name_no_place_of_the_machine() -> None:
    text = STORED_ANSWERS.read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"/(?:home|tmp|root|Users|work)/", text)


def test_make_demo_adds_the_samples_that_answers_are_stored_for(script: ModuleType) -> None:
    added = re.findall(r"dtef qa add (\S+) data/questions/(\S+)(?: --corpus data/questions/(\S+))? \$\(DEMO_SUITES\)", RECIPE)
    assert added == [(one.suite, one.path, one.corpus or "") for one in script.SAMPLES]


def test_make_demo_asks_nothing_but_the_demo_suites() -> None:
    """Without the pattern, a second `make demo` would ask about suites that a user added in between."""
    assert re.findall(r"dtef qa (run|board) (.*)", RECIPE) == [
        ("run", "--suite 'demo-*' --model local/smollm2-135m --judge none"),
        ("board", "--suite 'demo-*'"),
    ]
    assert set(re.findall(r"dtef qa add (\S+)", RECIPE)) <= {
        f"demo-{name}" for name in ("mmlu", "gsm8k", "humaneval", "socioscope")
    }
