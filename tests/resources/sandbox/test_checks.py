"""The verdict on a program is the tests' alone; a fault of the sandbox is none of the program's."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.code_checks import CHECK_STATUSES, CheckResult, SandboxTask
from dtef_pipeline.text.well_formed import well_formed
from resources.sandbox import check, levels, run
from resources.sandbox.levels import LEVELS, Interpreter, StartWay
from resources.sandbox.run import found_level, run_checks, settled_checks


def best() -> str:
    found = found_level(trust_answers=True)
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    return found.level


def checked(program: str, body: str, **settings: object) -> CheckResult:
    """One program checked at the best level by the body of a `check`."""
    tests = "def check(candidate):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    task = SandboxTask(program, "f", tests, "def helper(x):\n    return 2 * x\n\n\ndef f(x):\n    pass\n")
    (result,) = run_checks([task], level=best(), trust_answers=True, **settings)  # type: ignore[arg-type]
    return result


EVERY_KIND = "(None, True, 1, 10**400, -1, 1.5, float('inf'), 'é\\ud800', b'\\0', 1j, [1], (), {1}, {'a': (1,)})"
IMPORTS = (
    "dataclasses, typing, math, re, collections, functools, itertools, heapq, string, random, hashlib, datetime, statistics"
)
PROGRAMS = {
    "passed": ("def f(x):\n    return x", "assert candidate(1) == 1"),
    "assertion": ("def f(x):\n    return x", "assert candidate(1) == 2, 'wrong'"),
    "exception": ("def f(x):\n    return 1 / x", "candidate(0)"),
    "no_call": ("def f(x):\n    return x", "assert True"),
    "syntax": ("def f(x:\n    return x", "candidate(0)"),
    "load": ("import nothing_of_that_name\ndef f(x):\n    return x", "candidate(0)"),
    "crashed": ("import os\ndef f(x):\n    os._exit(3)", "candidate(0)"),
    "timeout": ("def f(x):\n    while True: pass", "candidate(0)"),
}


@pytest.mark.parametrize("status", PROGRAMS)
def test_each_status_is_told(status: str) -> None:
    result = checked(*PROGRAMS[status], timeout_s=0.5 if status == "timeout" else 60)
    assert result.status == status
    assert status in CHECK_STATUSES
    assert result.python
    assert result.level in LEVELS
    assert bool(result.detail) == (status not in ("passed", "no_call"))


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("def f(x):\n    raise ValueError('\\ud800\\0')", "candidate(0)"),
        ("def f(x):\n    return '\\ud800'", "assert candidate(0) == 1, candidate(0)"),
        ("raise ValueError('\\ud800')", "candidate(0)"),
    ],
)
def test_what_a_program_says_can_be_stored(program: str, body: str) -> None:
    """Half a character in the message of one error made the table of a whole part fail, in every run."""
    detail = checked(program, body, timeout_s=60).detail
    assert "\ufffd" in detail
    assert detail == well_formed(detail)
    assert pa.array([detail]).to_pylist() == [detail]


def test_a_check_that_fails_unexpectedly_is_a_fault_of_the_sandbox_for_this_program_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = check.check_once

    def fails_on_one(task: SandboxTask, *rest: object) -> CheckResult:
        if "broken" in task.program:
            raise KeyError("\ud800")
        return once(task, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "check_once", fails_on_one)
    tests = "def check(candidate):\n    assert candidate(1) == 1\n"
    programs = ["def f(x):\n    return x", "broken", "def f(x):\n    return x"]
    results = run_checks([SandboxTask(one, "f", tests) for one in programs], level=best(), trust_answers=True)
    assert [one.status for one in results] == ["passed", "sandbox_error", "passed"]


def test_an_assertion_that_says_nothing_is_told_by_its_line() -> None:
    """It was shown as `AssertionError:` with nothing behind it."""
    program = PROGRAMS["assertion"][0]
    assert checked(program, "assert candidate(0) == 0\nassert candidate(1) == 2").detail == (
        "AssertionError: assert candidate(1) == 2"
    )
    assert checked(program, "assert candidate(1) == 2, 'wrong'").detail == "AssertionError: wrong"
    assert checked(program, "candidate(1)\nraise KeyError").detail == "KeyError"


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("def f(x):\n    x.append(4)\n    return None", "found = [1]\ncandidate(found)\nassert found == [1, 4]"),
        ("def f(x):\n    x['b'] = [1]\n    del x['a']", "found = {'a': 1}\ncandidate(found)\nassert found == {'b': [1]}"),
        ("def f(x):\n    x.add(2)", "found = {1}\ncandidate(x=found)\nassert found == {1, 2}"),
        ("def f(x):\n    x[0].append(1)", "found = [[]]\ncandidate(found)\nassert found == [[1]]"),
        (
            "def f(x):\n    x.append(1)\n    raise ValueError('no')",
            "found = []\ntry:\n    candidate(found)\nexcept ValueError as error:\n    assert str(error) == 'no' and found == [1]",
        ),
        (
            f"def f(x):\n    return {EVERY_KIND}",
            f"found = candidate(0)\nassert found == {EVERY_KIND}\nassert type(found[1]) is bool",
        ),
        ("def f(x):\n    return x != x", "assert candidate(float('nan')) is True"),
        ("def f(x):\n    return 2 * x", "assert candidate(3) == helper(3) == f(3)"),
        (
            f"import {IMPORTS}\n@dataclasses.dataclass\nclass P:\n    x: int\ndef f(x):\n    return P(x).x",
            "assert candidate(3) == 3",
        ),
        ("if __name__ == '__main__':\n    raise SystemExit\ndef f(x):\n    return x", "assert candidate(3) == 3"),
        (
            "import sys\nsys.setrecursionlimit(5000)\ndef f(x):\n    return 0 if x == 0 else 1 + f(x - 1)",
            "assert candidate(2000) == 2000",
        ),
    ],
)
def test_right_answers_pass(program: str, body: str) -> None:
    result = checked(program, body, timeout_s=60)
    assert result.status == "passed", result


THREADS = """
import asyncio, threading
def f(x):
    out = []
    thread = threading.Thread(target=out.append, args=(x,))
    thread.start()
    thread.join()
    asyncio.run(asyncio.sleep(0))
    return out[0]
"""


@pytest.mark.parametrize("level", LEVELS[:3])
def test_threads_and_loops_of_events_are_let_pass(level: str) -> None:
    if (found := found_level(level)).level is None:
        pytest.skip(f"sandbox: {found.words}")
    task = SandboxTask(THREADS, "f", "def check(candidate):\n    assert candidate(1) == 1\n")
    (result,) = run_checks([task], level=level, timeout_s=60)
    assert result.status == "passed", result


@pytest.mark.parametrize(
    "value",
    [
        "object()",
        "range(3)",
        "(x for x in ())",
        "f",
        "[object()]",
        "...",
        "frozenset()",
    ],
)
def test_what_is_no_plain_data_is_refused(value: str) -> None:
    result = checked(f"def f(x):\n    return {value}", "candidate(1)", timeout_s=60)
    assert result.status == "exception"
    assert "no plain data" in result.detail


def test_the_same_answer_has_the_same_verdict_every_time() -> None:
    """The order of a set of strings changes from process to process unless it is fixed."""
    program = "def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})"
    said = {checked(program, "assert candidate(0) == [], candidate(0)", timeout_s=60).detail for _ in range(4)}
    assert len(said) == 1


def test_the_limit_is_for_the_whole_check() -> None:
    result = checked(
        "import time\ndef f(x):\n    time.sleep(0.2)\n    return x", "for _ in range(50): candidate(1)", timeout_s=1
    )
    assert result.status == "timeout"
    assert 0 < result.calls < 50
    assert 1 <= result.seconds < 20


def test_tests_that_cannot_be_loaded_are_no_fault_of_the_program() -> None:
    for tests in ("def check(candidate:\n", "pass", "def check(candidate):\n    candidate(object())\n"):
        task = SandboxTask("def f(x):\n    return x", "f", tests)
        (result,) = run_checks([task], level=best(), trust_answers=True)
        assert result.status == "sandbox_error"
        assert "tests" in result.detail


def test_right_answers_in_parallel_all_pass_in_order() -> None:
    tasks = [
        SandboxTask(f"def f(x):\n    return x + {n}", "f", f"def check(candidate):\n    assert candidate(1) == {n + 1}\n")
        for n in range(60)
    ]
    results = list(run_checks(tasks, level=best(), trust_answers=True, timeout_s=120, workers=8))
    assert [result.status for result in results] == ["passed"] * 60
    wrong = [tasks[0], SandboxTask("def f(x):\n    return 0", "f", tasks[0].tests), tasks[1]]
    assert [one.status for one in run_checks(wrong, level=best(), trust_answers=True)] == ["passed", "assertion", "passed"]


def test_a_program_that_ran_out_of_time_while_it_waited_is_run_once_more_alone_and_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine a right answer may take too long beside others."""
    best()
    tried: list[str] = []
    running: list[str] = []
    alone: list[bool] = []

    def fake(task: SandboxTask, *_: object) -> CheckResult:
        again = task.program in tried
        tried.append(task.program)
        running.append(task.program)
        time.sleep(0.05)
        if again:
            alone.append(running == [task.program])
        running.remove(task.program)
        late = task.program in ("endless", "busy") or (task.program == "right" and not again)
        return CheckResult("timeout" if late else "passed", cpu_seconds=9.5 if task.program == "busy" else 5.0)

    monkeypatch.setattr(run, "cores", lambda: 2)
    monkeypatch.setattr(run, "check", fake)
    tasks = {name: SandboxTask(name, "f", "") for name in ("right", "endless", "busy", "quick", "quicker")}
    told = [(key, result and result.status) for key, result in settled_checks(tasks, trust_answers=True)]
    first = [("right", None), ("endless", None), ("busy", "timeout"), ("quick", "passed"), ("quicker", "passed")]
    assert told == [*first, ("right", "passed"), ("endless", "timeout")]
    # What had the processor for nearly all of its ten seconds was late by itself.
    assert tried[5:] == ["right", "endless"]
    assert alone == [True, True]


@pytest.fixture
def way() -> StartWay:
    return StartWay("rlimits", (), most_tasks=None)


@pytest.mark.parametrize("command", ["/usr/bin/false", "/usr/bin/nothing-of-that-name"])
def test_a_process_that_does_not_start_is_tried_thrice_and_is_the_sandboxs_fault(
    command: str, way: StartWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    start = levels.start
    monkeypatch.setattr(check, "start", lambda *args: tried.append(args[2]) or start(*args))
    task = SandboxTask("def f(x):\n    return x", "f", "def check(candidate):\n    candidate(1)\n")
    result = check.check(task, way, Interpreter(command, None), 5)
    assert result.status == "sandbox_error"
    assert result.detail
    assert tried.count("candidate") == check.START_TRIES


def test_a_fault_that_passes_is_not_seen(way: StartWay, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([OSError("no more processes"), RuntimeError("popen failed")])
    start = levels.start

    def failing(*args: object) -> object:
        for failure in failures:
            raise failure
        return start(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "start", failing)
    task = SandboxTask("def f(x):\n    return x", "f", "def check(candidate):\n    candidate(1)\n")
    assert check.check(task, way, levels.interpreter(), 60).status == "passed"


def test_without_a_level_nothing_is_run_and_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SandboxTask("def f(x):\n    return x", "f", "")
    for level in ("off", "rlimits"):
        (result,) = run_checks([task], level=level)
        assert result.status == "sandbox_unavailable"
        assert result.level is None
    monkeypatch.setenv("DTEF_SANDBOX", "off")
    assert [one.status for one in run_checks([task])] == ["sandbox_unavailable"]
    assert "DTEF_SANDBOX is off" in found_level().words
    monkeypatch.setenv("DTEF_SANDBOX", "jail")
    with pytest.raises(ConfigError, match="DTEF_SANDBOX is 'jail'; allowed: auto, sandlock, bwrap, unshare, rlimits, off"):
        found_level()


@pytest.fixture
def fresh() -> Iterator[None]:
    run.usable_way.cache_clear()
    yield
    run.usable_way.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_the_ladder_goes_down_with_a_reason_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "sandlock_problem", lambda: "it needs Landlock ABI 6 (Linux 6.12), and this kernel has 3")
    monkeypatch.setattr(levels.shutil, "which", lambda name: None)
    found = found_level("auto")
    assert found.level is None
    assert list(found.not_better) == list(LEVELS)
    assert "this kernel has 3" in found.words
    assert found.not_better["bwrap"] == found.not_better["unshare"] == "its program is not installed"
    assert "--trust-answers" in found.not_better["rlimits"]
    if sys.platform == "linux":
        assert found_level("auto", trust_answers=True).level == "rlimits"


@pytest.mark.usefixtures("fresh")
def test_a_level_that_does_not_keep_its_promise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is installed and runs commands is no sandbox: at `bwrap` files must be out of reach."""
    if sys.platform != "linux":
        pytest.skip("levels of the sandbox need Linux")
    monkeypatch.setattr(run, "ways", lambda level, python: [StartWay("bwrap", ("/usr/bin/env",), most_tasks=None)])
    found = found_level("bwrap")
    assert found.level is None
    assert "runs as root" in found.words or "files can be read" in found.words


def test_without_a_python_of_the_system_the_running_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_SYSTEM_PYTHONS", ("/usr/bin/no-python",))
    own = levels.interpreter()
    assert Path(own.path).exists()
    tasks = [SandboxTask("def f(x):\n    return x", "f", "def check(candidate):\n    assert candidate(1) == 1\n")]
    monkeypatch.setattr(run, "_interpreter", lambda: own)
    run.usable_way.cache_clear()
    found = found_level("auto")
    results = [one.status for one in run_checks(tasks, level="auto")]
    run.usable_way.cache_clear()
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    assert results == ["passed"]
