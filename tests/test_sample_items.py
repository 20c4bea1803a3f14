"""The sample items in data/questions are right; that they can be read without a fault is tried in qa/test_stored_answers.py."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import ROOT


def json_lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (ROOT / "data" / "questions" / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("one", json_lines("gsm8k/test.jsonl"), ids=lambda one: one["question"][:30])
def test_the_working_is_right_and_ends_in_the_number(one: dict[str, str]) -> None:
    working, mark, stated = one["answer"].partition("\n#### ")
    assert mark
    equations = re.findall(r"(-?[(\d][\d +*/().-]*) = (-?\d+)", working)
    assert equations
    for left, right in equations:
        assert re.fullmatch(r"[\d +*/().-]+", left)
        assert eval(left) == pytest.approx(int(right))
    assert re.findall(r"-?\d+", working)[-1] == stated.replace(",", "")


PROBLEMS = json_lines("humaneval/HumanEval.jsonl")


def passes(problem: dict[str, str], body: str) -> bool:
    names: dict[str, Any] = {}
    try:
        exec(f"{problem['prompt']}{body}\n{problem['test']}", names)
        names["check"](names[problem["entry_point"]])
    except Exception:
        return False
    return True


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem["entry_point"])
def test_the_solution_passes_and_an_empty_body_does_not(problem: dict[str, str]) -> None:
    assert f"def {problem['entry_point']}(" in problem["prompt"]
    assert passes(problem, problem["canonical_solution"])
    assert not passes(problem, "    pass\n")
    assert not passes(problem, "")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem["entry_point"])
def test_the_examples_of_the_prompt_are_right(problem: dict[str, str]) -> None:
    names: dict[str, Any] = {}
    exec(problem["prompt"] + problem["canonical_solution"], names)
    examples = re.findall(r">>> (.+)\n\s*(.+)\n", problem["prompt"])
    assert examples
    for call, shown in examples:
        assert repr(eval(call, names)) == shown
