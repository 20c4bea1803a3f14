"""Published problems and published answers: the sandbox says what a plain run of the same programs says."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from dtef_pipeline.qa.program import CodeProgram, build_helpers, build_program
from resources.sandbox.run import choose_level, run_checks
from tests.made.shared_cases import cases, json_rows

FOLDER = "benchmarks/humaneval"
PATIENT = 60.0
ADDITION = {
    "task_id": "HumanEval/53",
    "entry_point": "add",
    "prompt": 'def add(x: int, y: int):\n    """The sum of x and y."""\n',
    "test": "def check(candidate):\n    assert candidate(0, 1) == 1\n    assert candidate(17, 25) == 42\n",
}
"""In place of the problem that the shared cases of code name, which is not shared: a sum, too."""


@functools.cache
def problems() -> Mapping[str, dict[str, Any]]:
    return {row["task_id"]: row for row in (ADDITION, *json_rows(f"{FOLDER}/HumanEval.jsonl"))}


def results(written: Iterable[tuple[str, str, str | None]], timeout_s: float = PATIENT) -> list[CheckResult]:
    """What comes of (task_id, text, prompt or None: the problem's own), in order; equal programs are run once."""
    found = choose_level()
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    planned = [(task, program(task, text, prompt)) for task, text, prompt in written]
    wanted = list(dict.fromkeys((task, made.source) for task, made in planned if not made.fault))
    tasks = [
        SandboxTask(source, own["entry_point"], own["test"], build_helpers(own["prompt"]))
        for own, source in ((problems()[task], source) for task, source in wanted)
    ]
    done = dict(zip(wanted, run_checks(tasks, level=found.level, timeout_s=timeout_s), strict=True))
    return [CheckResult(made.fault) if made.fault else done[task, made.source] for task, made in planned]


def program(task: str, text: str, prompt: str | None) -> CodeProgram:
    own = problems()[task]
    return build_program(text, prompt or own["prompt"], own["entry_point"])


def test_published_completions_have_their_verdicts() -> None:
    """Every forty-eighth one; the benchmark runs all 240."""
    published = json_rows(f"{FOLDER}/outputs/reflexion.jsonl")[::48]
    found = results((row["task_id"], row["text"], None) for row in published)
    told = [(row["task_id"], row["model"], row["status"] if row["text"] else "empty") for row in published]
    assert [(task, model, one.status) for (task, model, _), one in zip(told, found, strict=True)] == told
    assert [one.status == "passed" for one in found] == [row["passed"] for row in published]


def test_answers_of_a_small_model_in_fences_and_prose_are_run() -> None:
    """By hand: one of the eight is right; seven are programs that fail, none is refused for its prose."""
    found = results((row["task_id"], row["text"], None) for row in json_rows(f"{FOLDER}/outputs/smollm2-135m.jsonl"))
    assert sorted(one.status for one in found) == ["assertion"] * 5 + ["exception", "load", "passed"]


def test_the_shared_cases_of_code_are_decided_as_wished() -> None:
    wanted = [case for case in cases("benchmarks", "score") if case["in"]["scorer"] == "code_execution"]
    assert len(wanted) == 8
    for timeout in (PATIENT, 1.0):
        some = [case for case in wanted if (case["out"]["status"] == "timeout") == (timeout < PATIENT)]
        found = results([(case["in"]["task"], case["in"]["response"], None) for case in some], timeout_s=timeout)
        for case, one in zip(some, found, strict=True):
            wished = case["out"]["status"]
            assert (one.status != "passed") if wished == "failed" else (one.status == wished), (case["id"], one)
            assert float(one.status == "passed") == case["out"]["score"]
