"""Checking programs in the sandbox: checks per second at each level, and 600 right answers beside a loaded machine.

Run: `python benchmarks/sandbox.py [HUMANEVAL]`. With the folder of HumanEval (`HumanEval.jsonl`, `outputs/codegen-16b.jsonl`) all samples
of the base model are checked too, and pass@1 is printed with every sample whose verdict is not the published one.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from dtef_pipeline.qa.program import helpers_of, program_of
from resources.sandbox.levels import LEVELS
from resources.sandbox.run import cores, found_level, run_checks

CHECKS = 200
RIGHT_ANSWERS = 600
SMALL = SandboxTask(
    "def f(x):\n    return sorted(x)",
    "f",
    "def check(candidate):\n    for n in range(8):\n        assert candidate(list(range(n, 0, -1))) == list(range(1, n + 1))\n",
)


def timed(tasks: Sequence[SandboxTask], level: str, timeout_s: float) -> tuple[list[CheckResult], float]:
    began = time.perf_counter()
    found = list(run_checks(tasks, level=level, timeout_s=timeout_s, trust_answers=True))
    return found, len(tasks) / (time.perf_counter() - began)


def busy(until: float) -> None:
    while time.monotonic() < until:
        sum(range(10_000))


def beside_a_load(level: str) -> Counter[str]:
    """Statuses of right answers while twice as many processes as there are cores compute without pause."""
    until = time.monotonic() + 3600
    load = [multiprocessing.Process(target=busy, args=(until,), daemon=True) for _ in range(2 * cores())]
    for process in load:
        process.start()
    try:
        return Counter(one.status for one in timed([SMALL] * RIGHT_ANSWERS, level, 60)[0])
    finally:
        for process in load:
            process.kill()


def samples(folder: Path, level: str) -> None:
    problems = {row["task_id"]: row for row in lines(folder / "HumanEval.jsonl")}
    planned = []
    for row in lines(folder / "outputs" / "codegen-16b.jsonl"):
        own = problems[row["task_id"]]
        for text, passed in zip(row["samples"], row["passed"], strict=True):
            planned.append((row["task_id"], program_of(text, row["prompt"], own["entry_point"]), passed))
    runnable = [one for one in planned if not one[1].fault]
    tasks = [
        SandboxTask(made.source, own["entry_point"], own["test"], helpers_of(own["prompt"]))
        for own, made in ((problems[task], made) for task, made, _ in runnable)
    ]
    found, rate = timed(tasks, level, 10)
    right = sum(one.status == "passed" for one in found)
    print(
        f"{level}: {len(planned):,} samples, {len(tasks):,} of them run, {rate:.1f} checks/s, pass@1 {right / len(planned):.6f}"
    )
    other = Counter(
        (task, passed) for (task, _, passed), one in zip(runnable, found, strict=True) if passed != (one.status == "passed")
    )
    for (task, passed), number in other.items():
        print(f"  {task}: {number} published as {'passed' if passed else 'failed'}, here the other way")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    print(f"{cores()} cores")
    for level in LEVELS:
        found = found_level(level, trust_answers=True)
        if found.level is None:
            print(f"{level}: {found.words}")
            continue
        results, rate = timed([SMALL] * CHECKS, level, 60)
        print(f"{level}: {rate:.1f} checks/s, {Counter(one.status for one in results)}, Python {results[0].python}")
    best = found_level(trust_answers=True).level
    if best is None:
        return
    print(f"{best}: {RIGHT_ANSWERS} right answers beside a load: {beside_a_load(best)}")
    if len(sys.argv) > 1:
        samples(Path(sys.argv[1]), best)


if __name__ == "__main__":
    main()
