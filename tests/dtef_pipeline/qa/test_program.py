"""What a model wrote becomes the program that was meant, and no text makes the reader fail or wait."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.program import EMPTY_PROGRAM, LONGEST_PROGRAM, NOT_PYTHON, CodeProgram, build_helpers, build_program
from tests.made.shared_cases import json_rows

PROMPT = '''from typing import List


def helper(x: int) -> int:
    return x + 1


def add(x: int, y: int) -> int:
    """Add two numbers.
    >>> add(2, 3)
    5
    """
'''
WHOLE = "def add(x, y):\n    return x + y\n"

CASES: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def result(text: str | None, *, prompt: str = PROMPT) -> object:
    """What `add(2, 3)` of the program is, or the fault."""
    program = build_program(text, prompt, "add")
    if program.fault:
        return program.fault
    space: dict[str, object] = {}
    exec(program.source, space)
    return space["add"](2, 3)  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    CASES["meant"],
)
def test_the_code_that_was_meant_is_run(text: str) -> None:
    assert result(text) == 5


@pytest.mark.parametrize(
    "text", ["def plus(x, y):\n    return x + y", "```python\nimport math\n\n\ndef plus(x, y):\n    return x + y\n```\nDone."]
)
def test_a_function_of_another_name_is_a_program_without_the_function(text: str) -> None:
    """It was taken for the body of the function, which then returned nothing: `assertion` in place of `load`."""
    space: dict[str, object] = {}
    exec(build_program(text, PROMPT, "add").source, space)
    assert "add" not in space
    assert "plus" in space


@pytest.mark.parametrize("text", [None, "", "  \n\n\t", "<think>def add(x, y): return 5", "```python\n```", "```python\n\n\n"])
def test_nothing_is_empty(text: str | None) -> None:
    assert result(text) == EMPTY_PROGRAM


@pytest.mark.parametrize(
    "text",
    [
        "    return x +\n",
        "I cannot help with that.",
        "def add(x, y:\n    return 1",
        "    return '\ud800'",
        "    return 1\0",
        "(((",
        "Sure!\n\n\treturn x + y",
        "Sure!\n\n    I cannot help with that.",
        "for\n    return x + y",
        "def sum(:\n\n    return x + y",
    ],
)
def test_what_is_no_python_is_reported_with_the_compilers_words(text: str) -> None:
    program = build_program(text, PROMPT, "add")
    assert program.fault == NOT_PYTHON
    assert program.source == ""
    assert program.detail


def test_helpers_do_nothing_but_are_python() -> None:
    space: dict[str, object] = {}
    exec(build_helpers(PROMPT), space)
    assert space["add"](1, 2) is None  # type: ignore[operator]
    assert space["helper"](1) == 2  # type: ignore[operator]


HOSTILE_TEXTS = {
    "brackets": "(" * 1_000_000,
    "attributes": "    return a" + ".a" * 29_000,
    "strings": "    return " + "'a' " * 14_000,
    "ifs": "    return " + "1 if 1 else " * 4_500 + "1",
    "indents": "".join(" " * level + "if 1:\n" for level in range(1, 130)),
    "fences": "```\n" * 250_000,
    "functions": "def add(x, y):\n" * 70_000,
    "faults at the margin": "\n".join("    x = (\ny" for _ in range(90_000)),
    "f-strings": "    return " + "f'{" * 100,
    "thinking": "<think>" * 100_000,
    "marks of the end": "    </s> <|end|>" * 80_000,
    "indented prose": "Sure\n" + "    I will\n" * 90_000,
    "imports": "from __future__ import x\n" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_text_is_read_within_a_bound_also_in_a_thread(name: str) -> None:
    found: list[CodeProgram] = []
    thread = threading.Thread(target=lambda: found.append(build_program(HOSTILE_TEXTS[name], PROMPT, "add")))
    began = time.perf_counter()
    thread.start()
    thread.join()
    assert len(found) == 1
    assert found[0].fault in (None, EMPTY_PROGRAM, NOT_PYTHON)
    assert len(found[0].source) < 4 * LONGEST_PROGRAM
    assert time.perf_counter() - began < 30


PIECES = [
    "```",
    "```python\n",
    "\n",
    "    ",
    "def add(x, y):",
    "return x + y",
    "(",
    '"""',
    "#",
    "\t",
    "<think>",
    "</think>",
    "\0",
    "\r",
    "~~~",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join))
def test_any_text_is_a_program_or_a_fault(text: str) -> None:
    program = build_program(text, PROMPT, "add")
    assert (program.fault is None) == bool(program.source)
    if program.source:
        compile(program.source, "<test>", "exec")


def test_prompts_are_bodies_of_every_published_problem() -> None:
    for row in json_rows("benchmarks/humaneval/HumanEval.jsonl"):
        prompt, name, body = row["prompt"], row["entry_point"], row["canonical_solution"]
        for text in (body, body.strip(), prompt + body, f"Sure!\n```python\n{prompt}{body}```\nDone."):
            assert build_program(text, prompt, name).fault is None, row["task_id"]
        compile(build_helpers(prompt), "<test>", "exec")
