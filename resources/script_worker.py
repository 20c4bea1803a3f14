"""The process for scripts of criteria: reads one request per line, runs it in a new V8, writes one outcome per line.

Started as a file, with an empty environment; imports nothing of this project.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

LONGEST_RUN = 1.0
"""Maximum seconds of a script."""
LARGEST_HEAP = 64 * 2**20
"""Maximum bytes of V8's heap."""
LARGEST_PROCESS = 2**30
"""Maximum bytes of the process's data: typed arrays are outside V8's heap."""

# The script sees neither these names nor the timers that mini-racer adds. A top-level return makes it the body of a function.
_PROGRAM = """(() => {
  const stringify = JSON.stringify, evaluate = eval, text = String, Syntax = SyntaxError;
  setTimeout = clearTimeout = undefined;
  Object.assign(globalThis, %(variables)s);
  const code = %(script)s;
  const describe = value => typeof value === 'boolean' ? {type: 'boolean', value}
    : typeof value === 'number' ? {type: 'number', value: text(value)} : {type: value === null ? 'null' : typeof value};
  const run = () => {
    try { return evaluate(code); } catch (error) {
      if (!(error instanceof Syntax && text(error.message).includes('Illegal return'))) throw error;
      return evaluate('(() => {\\n' + code + '\\n})()');
    }
  };
  try {
    const found = run();
    if (typeof found !== 'object' || found === null || !('score' in found)) return stringify(describe(found));
    const explain = found.explain === undefined || found.explain === null ? null : text(found.explain).slice(0, 2000);
    return stringify({type: 'score', score: describe(found.score), explain});
  } catch (error) {
    return stringify({fault: 'error', text: text(error).slice(0, 500)});
  }
})()"""


def limit_process() -> None:
    """Limit memory and forbid file writing and core dumps, as far as the system can."""
    try:
        import resource
    except ImportError:
        return
    for kind, limit in ((resource.RLIMIT_DATA, LARGEST_PROCESS), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def outcome(script: str, variables: dict[str, Any]) -> dict[str, Any]:
    """Run a script in a new context; return its outcome."""
    import py_mini_racer

    program = _PROGRAM % {"variables": json.dumps(variables), "script": json.dumps(script)}
    try:
        with py_mini_racer.MiniRacer() as context:
            context.set_hard_memory_limit(LARGEST_HEAP)
            value = json.loads(str(context.eval(program, timeout_sec=LONGEST_RUN)))
            return value if isinstance(value, dict) else {"fault": "error", "text": "the script changed how outcomes are told"}
    except py_mini_racer.JSTimeoutException:
        return {"fault": "timeout", "text": f"the script ran longer than {LONGEST_RUN:g} s"}
    except py_mini_racer.JSOOMException:
        return {"fault": "memory", "text": f"the script took more than {LARGEST_HEAP // 2**20} MB"}
    except Exception as error:
        return {"fault": "error", "text": str(error)[:500]}


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries is not an answer
    limit_process()
    outcome("1", {})  # loads the engine before the first script arrives
    answers.write(b"{}\n")
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(outcome(**json.loads(line))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
