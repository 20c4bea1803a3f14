"""What a model wrote becomes the program that was meant, and no text makes the reader fail or wait."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.code_checks import CheckResult
from dtef_pipeline.qa.program import (
    EMPTY_PROGRAM,
    LONGEST_PROGRAM,
    NOT_PYTHON,
    CodeProgram,
    build_execution_rows,
    build_helpers,
    build_program,
    load_known_verdicts,
    merge_rows_so_far,
    plan_executions,
    select_programs_to_run,
)
from tests.made.qa_items import BIRD, TWICE, responses_to, rows_of_items
from tests.made.shared_cases import cases_beside, json_rows

PROMPT = '''from typing import List


def helper(x: int) -> int:
    return x + 1


def add(x: int, y: int) -> int:
    """Add two numbers.
    >>> add(2, 3)
    5
    """
'''

CASES = cases_beside(__file__)


def result(text: str | None, *, prompt: str = PROMPT) -> object:
    """What `add(2, 3)` of the program is, or the fault."""
    program = build_program(text, prompt, "add")
    if program.fault:
        return program.fault
    space: dict[str, object] = {}
    exec(program.source, space)
    return space["add"](2, 3)  # type: ignore[operator]


@pytest.mark.parametrize("text", CASES["meant"])
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


@pytest.mark.parametrize("text", CASES["nothing_is_empty"])
def test_nothing_is_empty(text: str | None) -> None:
    assert result(text) == EMPTY_PROGRAM


@pytest.mark.parametrize("text", CASES["what_is_no_python_is_reported_with_the_compilers_words"])
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
    "fences": "```\n" * 80_000,
    "functions": "def add(x, y):\n" * 30_000,
    "faults at the margin": "\n".join("    x = (\ny" for _ in range(40_000)),
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


ITEMS = rows_of_items(BIRD, TWICE)
RIGHT = "```python\ndef twice(x):\n    return 2 * x\n```"
PASSED = CheckResult("passed", "", "bwrap", "3.12.1", 0.25, 1)


def test_only_answered_responses_to_items_with_tests_are_run() -> None:
    responses = pa.concat_tables([responses_to(BIRD, "B"), responses_to(TWICE, RIGHT, None)])
    (one,) = plan_executions(responses, ITEMS, 10)
    assert (one.response["item_id"], one.response["draw"], one.verdict) == ("Demo/0", 0, None)
    assert one.task is not None
    assert "return 2 * x" in one.task.program
    assert (one.task.entry_point, "assert candidate(2) == 4" in one.task.tests) == ("twice", True)


def test_equal_programs_are_run_once_however_they_were_wrapped() -> None:
    wrapped = f"Here it is:\n{RIGHT}\nHave fun!"
    planned = plan_executions(responses_to(TWICE, RIGHT, wrapped, "    return x + x\n"), ITEMS, 10)
    assert planned[0].program_hash == planned[1].program_hash != planned[2].program_hash
    assert len(select_programs_to_run(planned, {})) == 2
    assert list(select_programs_to_run(planned, {planned[0].program_hash: PASSED})) == [planned[2].program_hash]


def test_other_tests_or_limits_are_another_run() -> None:
    other = rows_of_items(replace(TWICE, reference=TWICE.reference.replace("== 4", "== 5")))
    hashes = {
        plan_executions(responses_to(TWICE, RIGHT), items, limit)[0].program_hash
        for items, limit in ((ITEMS, 10), (ITEMS, 5), (other, 10))
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("text", "verdict"), [("", "empty"), ("```python\n```", "empty"), ("```python\ndef twice(x:\n```", "syntax")]
)
def test_what_is_no_program_is_never_run(text: str, verdict: str) -> None:
    planned = plan_executions(responses_to(TWICE, text), ITEMS, 10)
    assert select_programs_to_run(planned, {}) == {}
    (row,) = build_execution_rows(planned, {}).to_pylist()
    assert (row["verdict"], row["isolation"], row["python"]) == (verdict, None, None)


def test_rows_tell_what_came_of_each_response() -> None:
    planned = plan_executions(responses_to(TWICE, RIGHT, RIGHT), ITEMS, 10)
    failed = CheckResult("assertion", "2 is not 4", "sandlock", "3.12.1", 0.5, 1)
    rows = build_execution_rows(planned, {planned[0].program_hash: failed}).to_pylist()
    assert [row["draw"] for row in rows] == [0, 1]
    assert {(row["verdict"], row["message"], row["isolation"], row["wall_s"]) for row in rows} == {
        ("assertion", "2 is not 4", "sandlock", 0.5)
    }


class TestKnown:
    def rows(self, *results: CheckResult) -> pa.Table:
        texts = [f"    return {at}\n" for at, _ in enumerate(results)]
        planned = plan_executions(responses_to(TWICE, *texts), ITEMS, 10)
        return build_execution_rows(planned, {one.program_hash: result for one, result in zip(planned, results, strict=True)})

    def test_a_verdict_is_read_back_as_it_was(self) -> None:
        timeout = CheckResult("timeout", "10 s", "bwrap", "3.12.1", 10.0)
        earlier = self.rows(PASSED, timeout)
        assert list(load_known_verdicts(earlier, "bwrap").values()) == [replace(PASSED, calls=0), timeout]

    def test_at_another_level_and_after_a_fault_of_the_sandbox_it_is_run_again(self) -> None:
        fault = CheckResult("sandbox_error", "no process", "bwrap")
        earlier = self.rows(PASSED, fault, CheckResult("sandbox_unavailable"))
        assert [one.status for one in load_known_verdicts(earlier, "bwrap").values()] == ["passed"]
        assert load_known_verdicts(earlier, "sandlock") == {}
        assert load_known_verdicts(earlier, None) == {}


def test_what_is_not_run_yet_keeps_its_earlier_row() -> None:
    """A run at another level that was killed left its own rows alone: finished verdicts of all models were gone."""
    planned = plan_executions(responses_to(TWICE, RIGHT, "    return x + x\n", "", "    return x\n"), ITEMS, 10)
    everything = {one.program_hash: PASSED for one in planned}
    earlier = build_execution_rows(planned[:3], everything)
    new = {planned[0].program_hash: replace(PASSED, status="crashed", level="sandlock")}
    rows = merge_rows_so_far(planned, new, earlier).sort_by("draw")
    assert rows.select(["draw", "verdict", "isolation"]).to_pylist() == [
        {"draw": 0, "verdict": "crashed", "isolation": "sandlock"},
        {"draw": 1, "verdict": "passed", "isolation": "bwrap"},
        {"draw": 2, "verdict": "empty", "isolation": None},
    ]
    # At the earlier level the rest is what was written over, and what was never run.
    assert list(select_programs_to_run(planned, load_known_verdicts(rows, "bwrap"))) == [
        planned[0].program_hash,
        planned[3].program_hash,
    ]
    assert merge_rows_so_far(planned, new, earlier.slice(0, 0))["draw"].to_pylist() == [0, 2]
