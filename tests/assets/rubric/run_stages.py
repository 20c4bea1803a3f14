"""Runs of stages in processes that can be killed: forks of one that has imported what takes ten seconds.

    python -m tests.assets.rubric.run_stages

Reads a line of JSON for each run: [environment, configuration by asset name, stages, keys]. Runs the stages for these partitions, or all of
DAGSTER_HOME, in a fork, and prints its process id. For a line with a process id it prints the exit code when that run has ended (-9: killed).
Ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.conftest import ROOT


@dataclass
class StageRunner:
    """The process that forks."""

    process: subprocess.Popen[str]

    def start(self, config: dict[str, Any], stages: Sequence[str], keys: Sequence[str] = ()) -> int:
        """Begin a run in the environment there is now; its process id."""
        return self._send([dict(os.environ), config, list(stages), list(keys)])

    def await_end(self, process: int) -> int:
        """Wait for the end of the run; its exit code."""
        return self._send(process)

    def _send(self, line: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(line), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@contextmanager
def stage_runner() -> Iterator[StageRunner]:
    command = [sys.executable, "-m", "tests.assets.rubric.run_stages"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield StageRunner(process)
        finally:
            process.kill()


def run(environment: dict[str, str], config: dict[str, Any], stages: Sequence[str], keys: Sequence[str]) -> int:
    from assets.launch import materialize
    from assets.stage.file_notes import list_partitions
    from dtef_pipeline.cli.stage_runs import open_dagster_instance
    from dtef_pipeline.families import FAMILY_BY_NAME

    os.environ.clear()
    os.environ.update(environment)
    with open_dagster_instance() as instance:
        family = stages[0].partition("_")[0]
        family = family if family in FAMILY_BY_NAME else "survey"
        keys = keys or list_partitions(instance, FAMILY_BY_NAME[family].space)
        outcome = materialize(instance, stages, keys, config, family=family)
    print(*outcome.failures, sep="\n", file=sys.stderr)
    return 1 if outcome.failures else 0


def main() -> None:
    import assets.launch  # noqa: F401 - imported for the forks
    import resources.gateway.gateway
    from resources.gateway.queues import Backoff

    resources.gateway.gateway.Backoff = partial(Backoff, first=0.01, longest=0.1)  # type: ignore[misc,assignment]
    for line in sys.stdin:
        if isinstance(command := json.loads(line), int):
            print(os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]), flush=True)
            continue
        child = os.fork()
        if not child:
            # What the run prints is no answer to who started it.
            os.dup2(2, 1)
            os._exit(run(*command))
        print(child, flush=True)


if __name__ == "__main__":
    main()
