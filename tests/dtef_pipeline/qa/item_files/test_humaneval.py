"""Programs to write: the tests define `check`, the prompt begins the function, and no program is run to find out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files.gsm8k import find_defined_functions, load_humaneval
from tests.made.qa_items import written_lines
from tests.made.shared_cases import shared

GOOD = {
    "task_id": "HumanEval/4",
    "prompt": 'import math\n\n\ndef area(r):\n    """Area of a circle."""\n',
    "entry_point": "area",
    "canonical_solution": "    return math.pi * r * r\n",
    "test": "def check(candidate):\n    assert candidate(0) == 0\n",
}


@pytest.mark.parametrize("name", ["HumanEval.jsonl", "HumanEval.jsonl.gz", "test.JSONL"])
def test_an_item_is_named_by_its_task_and_brings_its_tests(name: str, tmp_path: Path) -> None:
    (item,) = load_humaneval(written_lines(tmp_path / name, GOOD)).items
    assert (item.item_id, item.part, item.type, item.cluster) == ("HumanEval/4", "all", "code", "HumanEval/4")
    assert item.text == GOOD["prompt"]
    assert json.loads(item.reference) == {key: value for key, value in GOOD.items() if key != "task_id"}
    assert load_humaneval(tmp_path).items == (item,)


def test_the_solution_may_be_absent(tmp_path: Path) -> None:
    without = {key: value for key, value in GOOD.items() if key != "canonical_solution"}
    (item,) = load_humaneval(written_lines(tmp_path / "x.jsonl", without)).items
    assert "canonical_solution" not in json.loads(item.reference)


def test_two_tasks_may_ask_for_functions_of_one_name_but_not_be_one_task(tmp_path: Path) -> None:
    found = load_humaneval(written_lines(tmp_path / "x.jsonl", GOOD, {**GOOD, "task_id": "HumanEval/5"}, GOOD))
    assert [item.item_id for item in found.items] == ["HumanEval/4", "HumanEval/5"]
    assert [(finding.code, finding.line) for finding in found.findings] == [("repeated", 2), ("duplicate_id", 3)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"test": "def test(candidate): ..."}, "test"),
        ({"test": "class T:\n    def check(self): ..."}, "test"),
        ({"test": "def check(candidate:\n"}, "test"),
        ({"test": "# def check(candidate): ..."}, "test"),
        ({"entry_point": "volume"}, "prompt"),
        ({"entry_point": "math"}, "prompt"),
        ({"prompt": "(" * 100_000}, "prompt"),
        ({"prompt": "x = " + "-" * 190_000 + "1"}, "prompt"),
        ({"prompt": "a" + ".b" * 90_000}, "prompt"),
        ({"prompt": "x\x00y"}, "encoding"),
        ({"task_id": None}, "text"),
        ({"test": ["check"]}, "text"),
        ({"entry_point": ""}, "text"),
    ],
)
def test_a_task_that_cannot_be_tested_is_left_out(change: dict[str, object], code: str, tmp_path: Path) -> None:
    found = load_humaneval(written_lines(tmp_path / "x.jsonl", {**GOOD, **change}, GOOD))
    assert [item.source_line for item in found.items] == [2]
    assert [(finding.code, finding.line) for finding in found.findings] == [(code, 1)]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(x):\n", {"f"}),
        ("def g(): ...\n\ndef f(x) -> int:", {"f", "g"}),
        ("async def f(): ...", {"f"}),
        ('x = "\\d"\ndef f(): ...', {"f"}),
        ("if True:\n    def f(): ...", set()),
        ("", set()),
    ],
)
def test_functions_are_found_at_the_outermost_level(code: str, names: set[str]) -> None:
    assert find_defined_functions(code) == names


@given(st.text(max_size=200))
def test_no_text_is_too_strange_to_look_through(code: str) -> None:
    assert isinstance(find_defined_functions(code), set)


def test_the_shared_tasks_are_read_whole() -> None:
    found = load_humaneval(shared("benchmarks/humaneval"))
    assert (len(found.items), found.findings) == (60, ())
