"""Scripts of criteria run in a process of their own and cannot keep it, leave it or remember anything in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.rubric.functions import evaluate
from resources.script_engine import ScriptEngine, has_script_engine
from tests.conftest import SHARED

ENOUGH_FOR_A_BUSY_MACHINE = 20.0
REPLIES = [
    "",
    "FINAL_ANSWER: C",
    "SCORE=85",
    "SCORE: 150",
    "1. Berlin\n2. Athens\n3. Paris",
    "I would say b.",
    "Été – 😀\n\n10. x, y (z)",
]
IN_NODE = """const vm = require('vm');
const run = ([script, r]) => {
  const sandbox = () => vm.createContext({r, response: r, context: {messages: [], modelId: null}});
  let found;
  try {
    try { found = vm.runInContext(script, sandbox()); } catch (error) {
      if (!error.message.includes('Illegal return')) throw error;
      found = vm.runInContext(`(() => {${script}\\n})()`, sandbox());
    }
  } catch (error) { return null; }
  if (typeof found === 'object' && found !== null) found = found.score;
  return found === undefined ? 0 : typeof found === 'boolean' || typeof found === 'number' ? Math.max(0, Math.min(1, Number(found))) : null;
};
console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).map(run)));"""

pytestmark = pytest.mark.skipif(not has_script_engine(), reason="the extra `js` (mini-racer) is not installed")


@pytest.fixture(scope="module")
def engine() -> Iterator[ScriptEngine]:
    with ScriptEngine(patience=ENOUGH_FOR_A_BUSY_MACHINE) as running:
        yield running


@pytest.mark.parametrize(
    ("script", "score"),
    [
        ("r.length / 10", 0.5),
        ("r === response", 1),
        ("r.length", 1),
        ("-3", 0),
        ("false", 0),
        ("1 / 0", 1),
        ("var n", 0),
        ("const n = r.length; n > 3 ? {score: 0.25, explain: 'long'} : 0", 0.25),
        ("const n = r.length; ({score: n / 20, explain: `has ${n}`})", 0.25),
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
        ("null", "script error"),
        ("[1]", "script error"),
        ("({score: '1'})", "script error"),
        ("(async () => 1)()", "script error"),
        ("nothing.at.all", "script error"),
        ("if (", "script error"),
        ("throw {toString() { throw 1 }}", "script error"),
        ("function f() { return f() + 1 } f()", "script error"),
        ("while (true) {}", "script timeout"),
        ("for (;;) { try { for (;;) {} } catch (error) {} }", "script timeout"),
        ("({get score() { for (;;) {} }})", "script timeout"),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", "script timeout"),
    ],
)
def test_a_script_that_gives_no_score_is_unscored_with_the_reason(engine: ScriptEngine, script: str, reason: str) -> None:
    found = evaluate("js", script, "a", engine)
    assert (found.score, found.reason) == (None, reason)
    assert found.explanation
    assert evaluate("js", "true", "a", engine).score == 1


@pytest.mark.parametrize(
    "script",
    [
        "const kept = []; for (;;) kept.push(new Array(1000).fill(1.5))",
        "const kept = []; for (;;) kept.push('x'.repeat(100000) + Math.random())",
        "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 26).fill(1))",
        "'x'.repeat(2 ** 28).split('').length",
    ],
)
def test_a_script_cannot_fill_the_memory(engine: ScriptEngine, script: str) -> None:
    found = evaluate("js", script, "a", engine)
    assert found.score is None
    assert found.reason in ("script memory", "script timeout", "script error", "script engine stopped")
    assert evaluate("js", "true", "a", engine).score == 1


@pytest.mark.parametrize(
    "name", ["require", "process", "fetch", "XMLHttpRequest", "setTimeout", "module", "Deno", "load", "code"]
)
def test_a_script_has_no_way_out(engine: ScriptEngine, name: str) -> None:
    assert evaluate("js", f"typeof {name} === 'undefined'", "a", engine).score == 1


def test_a_script_finds_nothing_of_an_earlier_one(engine: ScriptEngine) -> None:
    assert (
        evaluate("js", "globalThis.left = 1; Object.prototype.score = 1; Array.prototype.map = null; 1", "a", engine).score == 1
    )
    assert evaluate("js", "typeof left === 'undefined' && !('score' in {}) && [1].map(x => x)[0] === 1", "a", engine).score == 1


def test_the_process_knows_no_secret(engine: ScriptEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    with ScriptEngine() as fresh:
        assert evaluate("js", "true", "a", fresh).score == 1
        assert fresh._worker is not None
        environment = Path(f"/proc/{fresh._worker.process.pid}/environ")
        if environment.exists():
            assert environment.read_bytes() == b""


def test_a_process_that_was_killed_is_started_again(engine: ScriptEngine) -> None:
    assert evaluate("js", "true", "a", engine).score == 1
    assert engine._worker is not None
    os.kill(engine._worker.process.pid, signal.SIGKILL)
    assert evaluate("js", "true", "a", engine).score == 1


def test_a_script_that_does_not_stop_is_ended_from_outside() -> None:
    with ScriptEngine(patience=0.2) as impatient:
        started = time.monotonic()
        assert evaluate("js", "for (;;) {}", "a", impatient).reason == "script timeout"
        assert impatient._worker is None
        assert time.monotonic() - started < ENOUGH_FOR_A_BUSY_MACHINE


def test_a_closed_engine_leaves_no_process() -> None:
    with ScriptEngine() as closing:
        closing.run("1", {})
        assert closing._worker is not None
        process = closing._worker.process
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


def test_each_of_many_scripts_has_its_own_outcome(engine: ScriptEngine) -> None:
    found = [engine.run("n * 2", {"n": n}) for n in range(50)]
    assert [outcome["value"] for outcome in found] == [str(n * 2) for n in range(50)]


def test_public_scripts_score_as_under_node(engine: ScriptEngine) -> None:
    scripts = sorted(_public_scripts())
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed")
    calls = [(script, reply) for script in scripts for reply in REPLIES]
    done = subprocess.run([node, "-e", IN_NODE], input=json.dumps(calls), capture_output=True, text=True, check=True)
    wanted = json.loads(done.stdout)
    assert len(wanted) == len(calls) > 50
    for (script, reply), score in zip(calls, wanted, strict=True):
        assert evaluate("js", script, reply, engine).score == (None if score is None else pytest.approx(score)), (script, reply)


def _public_scripts() -> set[str]:
    """All scripts of the real blueprints."""
    folder = SHARED / "weval" / "blueprints"
    if not folder.is_dir():
        pytest.skip(f"the real blueprints are not at {folder}")
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.update(script for key, script in value.items() if key in ("$js", "$expr") and isinstance(script, str))
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(inner)

    for path in folder.rglob("*.yml"):
        text = path.read_text(encoding="utf-8")
        if "$js" in text or "$expr" in text:
            look(list(yaml.safe_load_all(text)))
    return found
