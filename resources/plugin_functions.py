"""Point functions that other packages add by entry points."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dtef_pipeline.errors import ConfigError

FUNCTION_GROUP = "dtef.rubric.functions"
"""Entry-point group of functions of (response, argument, context) that return a score from 0 to 1; an entry point's name is the function's
name."""


def load_plugin_functions() -> dict[str, Callable[..., Any]]:
    """Return all installed packages' functions by name. Raises ConfigError if one cannot be loaded."""
    return {point.name: _load_function(point.name, point.value, point.load) for point in entry_points(group=FUNCTION_GROUP)}


def _load_function(name: str, value: str, load: Callable[[], Any]) -> Callable[..., Any]:
    try:
        function = load()
    except Exception as error:
        raise ConfigError(
            f"the point function {name!r} of {value} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise ConfigError(f"the point function {name!r} of {value} is a {type(function).__name__}, not a function")
    result: Callable[..., Any] = function
    return result


_WORKER = Path(__file__).with_name("script_worker.py")
_SCRIPT_PATIENCE = 3.0
"""Seconds after which a script's process is killed if it has not stopped the script itself."""
_START = 60.0
"""Seconds for the process to start."""


def has_script_engine() -> bool:
    """Return whether the extra `js` is installed."""
    return importlib.util.find_spec("py_mini_racer") is not None


class ScriptEngine:
    """An engine for scripts, each run in a fresh context without files, network or memory of earlier ones.

    1 s and 64 MB per script; after `patience` seconds it is killed from outside. The process starts with the first script and serves all
    others; threads take turns. Its environment is empty.
    """

    def __init__(self, patience: float = _SCRIPT_PATIENCE) -> None:
        self._patience = patience
        self._turn = threading.Lock()
        self._worker: _Worker | None = None

    def run(self, script: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outcome of a script with global variables (see `dtef_pipeline.rubric.functions.ScriptHost`). Never raises."""
        with self._turn:
            return self._run(script, variables)

    def _run(self, script: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            request = json.dumps({"script": script, "variables": dict(variables)}, default=str)
        except (TypeError, ValueError, RecursionError) as error:
            return {"fault": "error", "text": f"the script's variables cannot be handed over: {error}"}
        is_fresh = self._worker is None
        answer = self._ask_worker(request)
        if answer is None and not is_fresh:  # a process that ended while idle is not the fault of this script
            answer = self._ask_worker(request)
        return answer or {"fault": "stopped", "text": "the process that ran the script ended"}

    def _ask_worker(self, request: str) -> Mapping[str, Any] | None:
        """Return the process's answer, or None if it ended. After a fault other than the script's own error, the next script gets a new one."""
        answer: Mapping[str, Any] | None
        try:
            if self._worker is None:
                self._worker = _Worker()
                weakref.finalize(self, self._worker.end)
            answer = self._worker.ask(request, self._patience)
            if answer.get("fault", "error") == "error":
                return answer
        except TimeoutError:
            answer = {"fault": "timeout", "text": f"the script was ended from outside after {self._patience:g} s"}
        except (OSError, EOFError, ValueError):
            answer = None
        self._end_worker()
        return answer

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def close(self) -> None:
        """End the process once the running script is done."""
        with self._turn:
            self._end_worker()


class _Worker:
    """The process, once it accepts scripts."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - this file's own neighbour, without a shell
            [sys.executable, "-I", "-B", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd=tempfile.gettempdir(),
            start_new_session=True,
        )
        self._left = b""
        try:
            self._read_line(_START)
        except BaseException:
            self.end()
            raise

    def ask(self, request: str, patience: float) -> Mapping[str, Any]:
        """Return the answer to one request. Raises TimeoutError if late, and EOFError, OSError or ValueError if the process is unusable."""
        assert self.process.stdin is not None
        remaining = memoryview(request.encode() + b"\n")
        while remaining:
            remaining = remaining[self.process.stdin.write(remaining) :]
        answer = json.loads(self._read_line(patience))
        if not isinstance(answer, dict):
            raise ValueError("the answer is no mapping")
        return answer

    def _read_line(self, patience: float) -> bytes:
        assert self.process.stdout is not None
        end = time.monotonic() + patience
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._left:
                if not ready.select(max(0.0, end - time.monotonic())):
                    raise TimeoutError
                read = os.read(self.process.stdout.fileno(), 2**16)
                if not read:
                    raise EOFError
                self._left += read
        line, _, self._left = self._left.partition(b"\n")
        return line

    def end(self) -> None:
        """Kill the process; it has nothing to clean up."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


@contextmanager
def evaluating(prepare: Callable[..., Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Yield `prepare` (which makes a family's function ready) with an engine for scripts, if available, and the functions of other
    packages.

    The engine's process starts with the first script and ends with the context.
    """
    functions = load_plugin_functions()
    with contextlib.closing(ScriptEngine()) if has_script_engine() else contextlib.nullcontext() as engine:
        yield lambda name, argument: prepare(name, argument, engine, functions)
