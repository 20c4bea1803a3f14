"""Scripts of criteria run in a process of their own and cannot keep it, leave it or remember anything in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from resources.plugin_functions import ScriptEngine, has_script_engine
from tests.dtef_pipeline.rubric.scored_rows import evaluate

ENOUGH_FOR_A_BUSY_MACHINE = 20.0

pytestmark = pytest.mark.skipif(not has_script_engine(), reason="the extra `js` (mini-racer) is not installed")


@pytest.fixture(scope="module")
def engine() -> Iterator[ScriptEngine]:
    with closing(ScriptEngine(patience=ENOUGH_FOR_A_BUSY_MACHINE)) as running:
        yield running


@pytest.mark.parametrize(
    ("script", "score"),
    [
        ("r.length / 10", 0.5),
        ("-3", 0),
        ("var n", 0),
        ("const n = r.length; n > 3 ? {score: 0.25, explain: 'long'} : 0", 0.25),
        ("if (r.includes('x')) { return 1; }\nreturn {score: true}", 1),
        ("return // nothing", 0),
        ("context.messages[0].role === 'user' && context.modelId === 'm'", 1),
    ],
)
def test_a_script_scores_by_its_last_value_or_as_the_body_of_a_function(
    engine: ScriptEngine, script: str, score: float
) -> None:
    found = evaluate("js", script, "abc😀", engine, {"messages": [{"role": "user", "content": "?"}], "modelId": "m"})
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("0 / 0", "script error"),
        ("'1'", "script error"),
        ("({score: '1'})", "script error"),
        ("nothing.at.all", "script error"),
        ("if (", "script error"),
        ("function f() { return f() + 1 } f()", "script error"),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", "script timeout"),
    ],
)
def test_a_script_that_gives_no_score_is_unscored_with_the_reason(engine: ScriptEngine, script: str, reason: str) -> None:
    found = evaluate("js", script, "a", engine)
    assert (found.score, found.reason) == (None, reason)
    assert found.explanation
    assert evaluate("js", "true", "a", engine).score == 1


@pytest.mark.parametrize(
    "script", ["const kept = []; for (;;) kept.push(new Uint8Array(2 ** 26).fill(1))", "'x'.repeat(2 ** 26).split('').length"]
)
def test_a_script_cannot_fill_the_memory(engine: ScriptEngine, script: str) -> None:
    found = evaluate("js", script, "a", engine)
    assert found.score is None
    assert found.reason in ("script memory", "script timeout", "script error", "script engine stopped")
    assert evaluate("js", "true", "a", engine).score == 1


def test_a_script_has_no_way_out(engine: ScriptEngine) -> None:
    names = ("require", "process", "fetch", "XMLHttpRequest", "setTimeout", "module", "Deno", "load", "code")
    there = [name for name in names if evaluate("js", f"typeof {name} === 'undefined'", "a", engine).score != 1]
    assert there == []


def test_a_script_finds_nothing_of_an_earlier_one(engine: ScriptEngine) -> None:
    assert (
        evaluate("js", "globalThis.left = 1; Object.prototype.score = 1; Array.prototype.map = null; 1", "a", engine).score == 1
    )
    assert evaluate("js", "typeof left === 'undefined' && !('score' in {}) && [1].map(x => x)[0] === 1", "a", engine).score == 1


def test_the_process_knows_no_secret(engine: ScriptEngine) -> None:
    assert evaluate("js", "true", "a", engine).score == 1
    assert engine._worker is not None
    environment = Path(f"/proc/{engine._worker.process.pid}/environ")
    if environment.exists():
        assert environment.read_bytes() == b""


def test_a_process_that_was_killed_is_started_again(engine: ScriptEngine) -> None:
    assert evaluate("js", "true", "a", engine).score == 1
    assert engine._worker is not None
    os.kill(engine._worker.process.pid, signal.SIGKILL)
    assert evaluate("js", "true", "a", engine).score == 1


def test_a_script_that_does_not_stop_is_ended_from_outside() -> None:
    with closing(ScriptEngine(patience=0.2)) as impatient:
        started = time.monotonic()
        assert evaluate("js", "for (;;) {}", "a", impatient).reason == "script timeout"
        assert impatient._worker is None
        assert time.monotonic() - started < ENOUGH_FOR_A_BUSY_MACHINE


def test_a_closed_engine_leaves_no_process() -> None:
    with closing(ScriptEngine()) as engine:
        engine.run("1", {})
        assert engine._worker is not None
        process = engine._worker.process
    assert process.poll() is not None


def test_arguments_of_tool_calls_can_be_judged_by_an_expression(engine: ScriptEngine) -> None:
    text = 'TOOL_CALL {"name": "a", "arguments": {"n": 3}}\nTOOL_CALL {"name": "a", "arguments": {"n": 5}}\nTOOL_CALL {"name": "b"}'

    def found(name: str, where: str) -> Any:
        score = evaluate("tool_args_match", {"name": name, "where": where}, text, engine)
        return score.reason if score.score is None else score.score

    assert found("a", "args.n === 5 // five") == 1
    assert found("a", "args.n > 5") == 0
    assert found("a", "args.options.deep") == "script error"
    assert found("a", "args.n === 3 || args.options.deep") == 1
    assert found("b", "args.n") == 0
    assert found("c", "true") == 0
    assert evaluate("not_tool_args_match", {"name": "a", "where": "args.n === 5"}, text, engine).score == 0
