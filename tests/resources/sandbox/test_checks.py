"""The verdict on a program is the tests' alone; a fault of the sandbox is none of the program's."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.code_checks import CHECK_STATUSES, CheckResult, SandboxTask
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.sandbox import levels, run
from resources.sandbox.levels import LEVELS, Interpreter, StartWay
from resources.sandbox.run import choose_level, run_checks, run_checks_twice

CASES = tomllib.loads(Path(__file__).with_name("checks.toml").read_text(encoding="utf-8"))
PROGRAMS, RIGHT = (
    {name: (one["program"], one["check"]) for name, one in CASES[group].items()} for group in ("programs", "right")
)
CROSSING = CASES["crossing"]
IDENTITY = "def f(x):\n    return x"


def as_task(program: str, body: str) -> SandboxTask:
    """The program, with the body of a `check`."""
    tests = "def check(candidate):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return SandboxTask(program, "f", tests, "def helper(x):\n    return 2 * x\n\n\ndef f(x):\n    pass\n")


def best_level() -> str:
    if (found := choose_level()).level is None:
        pytest.skip(f"sandbox: {found.words}")
    return found.level


def checked(*cases: tuple[str, str], timeout_s: float = 60, workers: int | None = None) -> list[CheckResult]:
    """Programs checked at the best level by the bodies of a `check`."""
    return list(run_checks([as_task(*case) for case in cases], level=best_level(), timeout_s=timeout_s, workers=workers))


def test_each_status_is_reported_in_order() -> None:
    results = checked(*PROGRAMS.values())
    assert [one.status for one in results] == list(PROGRAMS)
    assert set(PROGRAMS) <= set(CHECK_STATUSES)
    assert all(one.python and one.level in LEVELS for one in results)
    assert [bool(one.detail) for one in results] == [status not in ("passed", "no_call") for status in PROGRAMS]


def test_what_is_stated_is_one_line_that_can_be_stored() -> None:
    """Half a character in the message of one error made the table of a whole part fail, in every run."""
    halves = [
        ("def f(x):\n    raise ValueError('\\ud800\\0')", "candidate(0)"),
        ("def f(x):\n    return '\\ud800'", "assert candidate(0) == 1, candidate(0)"),
        ("raise ValueError('\\ud800')", "candidate(0)"),
    ]
    silent = [
        (IDENTITY, "assert candidate(0) == 0\nassert candidate(1) == 2"),
        (IDENTITY, "assert candidate(1) == 2, 'wrong'"),
        (IDENTITY, "candidate(1)\nraise KeyError"),
    ]
    details = [one.detail for one in checked(*halves, *silent)]
    assert all("\ufffd" in detail and detail == replace_surrogates(detail) for detail in details[:3])
    assert pa.array(details).to_pylist() == details
    assert details[3:] == ["AssertionError: assert candidate(1) == 2", "AssertionError: wrong", "KeyError"]


def test_a_check_that_fails_unexpectedly_is_a_fault_of_the_sandbox_for_this_program_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = run.check_once

    def fails_on_one(task: SandboxTask, *rest: object) -> CheckResult:
        if "broken" in task.program:
            raise KeyError("\ud800")
        return once(task, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "check_once", fails_on_one)
    results = checked(("broken", ""), PROGRAMS["passed"])
    assert [one.status for one in results] == ["sandbox_error", "passed"]


def test_right_answers_pass() -> None:
    results = dict(zip(RIGHT, checked(*RIGHT.values(), workers=4), strict=True))
    assert {name: one for name, one in results.items() if one.status != "passed"} == {}


@pytest.mark.parametrize("level", LEVELS)
def test_threads_and_loops_of_events_are_let_pass(level: str) -> None:
    if (found := choose_level(level)).level is None:
        pytest.skip(f"sandbox: {found.words}")
    (result,) = run_checks([as_task(CROSSING["threads"], "assert candidate(1) == 1")], level=level, timeout_s=60)
    assert result.status == "passed", result


NOT_PLAIN = (
    "object()",
    "range(3)",
    "(x for x in ())",
    "f",
    "[object()]",
    "...",
    "frozenset()",
    "type('Y', (), {'__class__': int})()",
)


def test_a_subclass_crosses_as_the_value_of_its_base_and_other_objects_are_refused() -> None:
    """Solutions that return a Counter or a defaultdict were counted wrong. What the subclass says of itself does not count."""
    program, cases = CROSSING["program"], " ".join(CROSSING["subclasses"].splitlines())
    of_base = f"for value, base in [{cases}]:\n    found = candidate(value)\n    assert type(found) is type(base), value"
    refused = (
        f"for value in {NOT_PLAIN}:\n    try:\n        candidate(value)\n    except TypeError as error:\n"
        "        assert 'no plain data' in str(error)\n    else:\n        assert False, value"
    )
    results = checked((program, f"{of_base}\n    assert found == base and found != 7, value"), (program, refused))
    assert [one.status for one in results] == ["passed", "passed"], results


def test_the_same_answer_has_the_same_verdict_every_time() -> None:
    """The order of a set of strings changes from process to process unless it is fixed."""
    case = ("def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})", "assert candidate(0) == [], candidate(0)")
    assert len({one.detail for one in checked(case, case)}) == 1


def test_the_limit_is_for_the_whole_check() -> None:
    slow = "import time\ndef f(x):\n    time.sleep(0.2)\n    return x"
    (result,) = checked((slow, "for _ in range(50): candidate(1)"), timeout_s=1)
    assert result.status == "timeout"
    assert 0 < result.calls < 50
    assert 1 <= result.seconds < 20


def test_tests_that_cannot_be_loaded_are_no_fault_of_the_program() -> None:
    broken = ("def check(candidate:\n", "pass", "def check(candidate):\n    candidate(object())\n")
    for result in run_checks([SandboxTask(IDENTITY, "f", tests) for tests in broken], level=best_level()):
        assert result.status == "sandbox_error"
        assert "tests" in result.detail


def test_a_program_that_ran_out_of_time_while_it_waited_is_run_once_more_alone_and_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine a right answer may take too long beside others."""
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
    monkeypatch.setattr(run, "find_usable_way", lambda level: StartWay(level, ()))
    tasks = {name: SandboxTask(name, "f", "") for name in ("right", "endless", "busy", "quick", "quicker")}
    told = [(key, result and result.status) for key, result in run_checks_twice(tasks)]
    first = [("right", None), ("endless", None), ("busy", "timeout"), ("quick", "passed"), ("quicker", "passed")]
    assert told == [*first, ("right", "passed"), ("endless", "timeout")]
    # What had the processor for nearly all of its ten seconds was late by itself.
    assert tried[5:] == ["right", "endless"]
    assert alone == [True, True]


@pytest.fixture
def way() -> StartWay:
    """Apart from nothing, but for limits."""
    return StartWay("bwrap", (), most_tasks=None)


@pytest.mark.parametrize("command", ["/usr/bin/false", "/usr/bin/nothing-of-that-name"])
def test_a_process_that_does_not_start_is_tried_thrice_and_is_the_sandboxs_fault(
    command: str, way: StartWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    start = levels.start
    monkeypatch.setattr(run, "start", lambda *args: tried.append(args[1]) or start(*args))
    monkeypatch.setattr(levels, "find_interpreter", lambda: Interpreter(command, None))
    result = run.check(as_task(*PROGRAMS["passed"]), way, 5)
    assert result.status == "sandbox_error"
    assert result.detail
    assert tried.count("candidate") == run.START_TRIES


def test_a_fault_that_passes_is_not_seen(way: StartWay, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([OSError("no more processes"), RuntimeError("popen failed")])
    start = levels.start

    def failing(*args: object) -> object:
        for failure in failures:
            raise failure
        return start(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "start", failing)
    assert run.check(as_task(*PROGRAMS["passed"]), way, 60).status == "passed"


def test_without_a_level_nothing_is_run_and_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SandboxTask(IDENTITY, "f", "")
    (result,) = run_checks([task], level="off")
    assert (result.status, result.level) == ("sandbox_unavailable", None)
    monkeypatch.setenv("DTEF_SANDBOX", "off")
    assert [one.status for one in run_checks([task])] == ["sandbox_unavailable"]
    assert "DTEF_SANDBOX is off" in choose_level().words
    monkeypatch.setenv("DTEF_SANDBOX", "jail")
    with pytest.raises(ConfigError, match="DTEF_SANDBOX is 'jail'; allowed: auto, sandlock, bwrap or off"):
        choose_level()


@pytest.fixture
def fresh() -> Iterator[None]:
    run.find_usable_way.cache_clear()
    yield
    run.find_usable_way.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_the_ladder_goes_down_with_a_reason_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_sandlock_problem", lambda: "it needs Landlock ABI 6 (Linux 6.12), and this kernel has 3")
    monkeypatch.setattr(levels.shutil, "which", lambda name: None)
    found = choose_level("auto")
    assert found.level is None
    assert list(found.reasons) == list(LEVELS)
    assert "this kernel has 3" in found.words
    assert found.reasons["bwrap"] == "its program is not installed"


@pytest.mark.usefixtures("fresh")
def test_a_level_that_does_not_keep_its_promise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is installed and runs commands is no sandbox: at `bwrap` files must be out of reach."""
    if sys.platform != "linux":
        pytest.skip("levels of the sandbox need Linux")
    monkeypatch.setattr(run, "list_ways", lambda level: [StartWay("bwrap", ("/usr/bin/env",), most_tasks=None)])
    found = choose_level("bwrap")
    assert found.level is None
    assert "runs as root" in found.words or "files can be read" in found.words


@pytest.mark.usefixtures("fresh")
def test_without_a_python_of_the_system_the_running_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_SYSTEM_PYTHONS", ("/usr/bin/no-python",))
    own = levels.find_interpreter.__wrapped__()
    assert Path(own.path).exists()
    monkeypatch.setattr(levels, "find_interpreter", lambda: own)
    assert [one.status for one in checked(PROGRAMS["passed"])] == ["passed"]
