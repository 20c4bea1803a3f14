"""Published problems and published answers: the sandbox says what a plain run of the same programs says."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from dtef_pipeline.qa.program import CodeProgram, helpers_of, program_of
from resources.sandbox.run import found_level, run_checks
from tests.conftest import SHARED

FOLDER = SHARED / "benchmarks" / "humaneval"
PATIENT = 60.0
MISLABELLED = {("HumanEval/12", 5), ("HumanEval/43", 12), ("HumanEval/58", 0), ("HumanEval/121", 4)}
"""Some of the samples that the shipped file calls failed, although they pass all tests in a plain interpreter too."""


ADDITION = {
    "task_id": "HumanEval/53",
    "entry_point": "add",
    "prompt": 'def add(x: int, y: int):\n    """The sum of x and y."""\n',
    "test": "def check(candidate):\n    assert candidate(0, 1) == 1\n    assert candidate(17, 25) == 42\n",
}
"""In place of the problem that the shared cases of code name, which is not shared: a sum, too."""


def rows(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"no published answers at {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@functools.cache
def problems() -> Mapping[str, dict[str, Any]]:
    return {row["task_id"]: row for row in (ADDITION, *rows("HumanEval.jsonl"))}


def results(written: Iterable[tuple[str, str, str | None]], timeout_s: float = PATIENT) -> list[CheckResult]:
    """What comes of (task_id, text, prompt or None: the problem's own), in order; equal programs are run once."""
    found = found_level()
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    planned = [(task, program(task, text, prompt)) for task, text, prompt in written]
    wanted = list(dict.fromkeys((task, made.source) for task, made in planned if not made.fault))
    tasks = [
        SandboxTask(source, own["entry_point"], own["test"], helpers_of(own["prompt"]))
        for own, source in ((problems()[task], source) for task, source in wanted)
    ]
    done = dict(zip(wanted, run_checks(tasks, level=found.level, timeout_s=timeout_s), strict=True))
    return [CheckResult(made.fault) if made.fault else done[task, made.source] for task, made in planned]


def program(task: str, text: str, prompt: str | None) -> CodeProgram:
    own = problems()[task]
    return program_of(text, prompt or own["prompt"], own["entry_point"])


def test_published_solutions_pass() -> None:
    """Every eighth one; the benchmark runs all 164."""
    published = {task: row for task, row in list(problems().items())[1::8] if "canonical_solution" in row}
    found = results((task, row["canonical_solution"], None) for task, row in published.items())
    assert {task: one for task, one in zip(published, found, strict=True) if one.status != "passed"} == {}
    assert all(one.calls for one in found)


def test_no_empty_answer_passes() -> None:
    empty = results((task, "", None) for task in problems())
    assert {one.status for one in empty} == {"empty"}
    nothing = results((task, "    pass\n", None) for task in list(problems())[1::16])
    assert {one.status for one in nothing} <= {"assertion", "exception"}


def test_published_completions_have_their_verdicts() -> None:
    """Every twelfth one; the benchmark runs all 240."""
    published = rows("outputs/reflexion.jsonl")[::12]
    found = results((row["task_id"], row["text"], None) for row in published)
    told = [(row["task_id"], row["model"], row["status"] if row["text"] else "empty") for row in published]
    assert [(task, model, one.status) for (task, model, _), one in zip(told, found, strict=True)] == told
    assert [one.status == "passed" for one in found] == [row["passed"] for row in published]


def test_answers_of_a_small_model_in_fences_and_prose_are_run() -> None:
    """By hand: one of the eight is right; seven are programs that fail, none is refused for its prose."""
    found = results((row["task_id"], row["text"], None) for row in rows("outputs/smollm2-135m.jsonl"))
    assert sorted(one.status for one in found) == ["assertion"] * 5 + ["exception", "load", "passed"]


def test_samples_of_a_base_model_have_the_shipped_verdicts() -> None:
    """Every sixtieth sample, and four that are mislabelled; the benchmark runs all 1,200."""
    samples = [
        (row["task_id"], place, text, row["prompt"], passed)
        for row in rows("outputs/codegen-16b.jsonl")
        for place, (text, passed) in enumerate(zip(row["samples"], row["passed"], strict=True))
    ]
    some = [one for number, one in enumerate(samples) if one[:2] in MISLABELLED or number % 60 == 30]
    assert {one[:2] for one in some if one[:2] in MISLABELLED and not one[4]} == MISLABELLED
    found = results(((task, text, prompt) for task, _, text, prompt, _ in some), timeout_s=10)
    expected = [passed or (task, place) in MISLABELLED for task, place, _, _, passed in some]
    assert [(one[:2], result.status == "passed") for one, result in zip(some, found, strict=True)] == [
        (one[:2], right) for one, right in zip(some, expected, strict=True)
    ]


def test_the_shared_cases_of_code_are_decided_as_wished() -> None:
    path = FOLDER.parent / "vectors.json"
    if not path.is_file():
        pytest.skip(f"no vectors at {path}")
    cases = [
        case
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
        if case["fn"] == "score" and case["in"].get("scorer") == "code_execution"
    ]
    assert len(cases) == 8
    for timeout in {case["in"]["timeout_s"] for case in cases}:
        some = [case for case in cases if case["in"]["timeout_s"] == timeout]
        found = results([(case["in"]["task"], case["in"]["response"], None) for case in some], timeout_s=timeout)
        for case, one in zip(some, found, strict=True):
            wished = case["out"]["status"]
            assert (one.status != "passed") if wished == "failed" else (one.status == wished), (case["id"], one)
            assert float(one.status == "passed") == case["out"]["score"]
