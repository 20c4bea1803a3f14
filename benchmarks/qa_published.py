"""Published outputs through the whole qa pipeline: imported, scored, and compared with what was published of them.

    python -m benchmarks.qa_published DATA [--suite gsm8k --suite humaneval]

DATA is a folder with `gsm8k/` and `humaneval/` in the layout of the tests' shared data: items, `index.json` and `outputs/*.jsonl`. Prints, per
model, the accuracy here beside the published one and the outputs that differ; of programs with several draws also pass@k. Exit code 1 where
an output differs that is not known to be mislabelled. HumanEval runs 1,440 programs, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import comb
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dtef_pipeline.cli import main as dtef
from tests.assets.qa.test_imported import OTHERWISE_READ
from tests.resources.sandbox.test_humaneval import MISLABELLED

Output = tuple[str, str, int]
"""Model, item and draw."""
PUBLISHED_KS = (1, 10)


def called(*arguments: object) -> str:
    result = CliRunner().invoke(dtef, [str(argument) for argument in arguments])
    if result.exit_code:
        raise SystemExit(f"dtef {' '.join(map(str, arguments))}: exit code {result.exit_code}\n{result.output}")
    return result.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def of_sums(data: Path) -> dict[Output, bool]:
    """What was published of each output; ToRA's readings are compared with the references."""
    numbers = {number: place for place, number in enumerate(json.loads((data / "index.json").read_text(encoding="utf-8")))}
    references = [float(row["answer"].rpartition("####")[2].replace(",", "")) for row in lines(data / "test.jsonl")]
    found = {}
    for row in [*lines(data / "outputs" / "openai-gpt3-2021.jsonl"), *lines(data / "outputs" / "tora-70b.jsonl")]:
        place = numbers[row["index"]]
        right = row["published_correct"] if "published_correct" in row else _is(row["published_prediction"], references[place])
        found[row["model"], f"gsm8k/{place}", 0] = right
    return found


def _is(prediction: str, reference: float) -> bool:
    try:
        return abs(float(prediction.replace(",", "")) - reference) < 1e-6
    except ValueError:
        return False


def of_programs(data: Path) -> dict[Output, bool]:
    found = {(row["model"], row["task_id"], 0): row["passed"] for row in lines(data / "outputs" / "reflexion.jsonl")}
    for row in lines(data / "outputs" / "codegen-16b.jsonl"):
        found |= {(row["model"], row["task_id"], draw): passed for draw, passed in enumerate(row["passed"])}
    return found


def run_suite(suite: str, items: Path, outputs: Sequence[Path], options: Sequence[object], draws: dict[str, int]) -> None:
    """Add the items, import the outputs, and score them; models with the same number of draws in one run."""
    called("qa", "add", suite, items)
    for path in outputs:
        print(called("responses", "import", path, "--suite", suite, *options).splitlines()[0])
    for number in sorted(set(draws.values())):
        models = [part for name, own in draws.items() if own == number for part in ("--model", f"imported/{name}")]
        began = time.monotonic()
        called("qa", "run", "--suite", suite, *models, "--draws", number, "--judge", "none", "--timeout-s", 30)
        print(f"{suite}: {len(models) // 2} models x {number} draws run in {time.monotonic() - began:.0f} s")


def scored(suite: str, metric: str) -> dict[Output, float | None]:
    sql = f"SELECT model, item_id, draw, score FROM qa_scores WHERE suite = '{suite}' AND metric = '{metric}'"
    rows = json.loads(called("sql", sql, "--format", "json"))
    return {(row["model"].removeprefix("imported/"), row["item_id"], row["draw"]): row["score"] for row in rows}


def differing(found: dict[Output, float | None], published: dict[Output, bool]) -> list[Output]:
    return [one for one, right in published.items() if found.get(one) != float(right)]


def told_models(found: dict[Output, float | None], published: dict[Output, bool]) -> Iterator[str]:
    for model in dict.fromkeys(one[0] for one in published):
        own = [one for one in published if one[0] == model]
        here = sum(found.get(one) or 0.0 for one in own) / len(own)
        there = sum(published[one] for one in own) / len(own)
        yield f"  {model:<22} {len(own):>5} outputs  here {here:.6f}  published {there:.6f}"


def pass_at(verdicts: dict[Output, bool], model: str, k: int) -> float:
    """The mean over items of 1 - C(n - c, k) / C(n, k)."""
    of_items: dict[str, list[bool]] = defaultdict(list)
    for (name, item, _), passed in verdicts.items():
        if name == model:
            of_items[item].append(passed)
    chances = [1 - comb(len(some) - sum(some), k) / comb(len(some), k) for some in of_items.values()]
    return sum(chances) / len(chances)


def told_pass_rates(found: dict[Output, float | None], published: dict[Output, bool]) -> Iterator[str]:
    model = "codegen-16b"
    rows = json.loads(
        called("sql", f"SELECT k, pass_at_k FROM qa_pass_at_k WHERE model = 'imported/{model}'", "--format", "json")
    )
    board = {row["k"]: row["pass_at_k"] for row in rows}
    here = {one: score == 1 for one, score in found.items()}
    for k in PUBLISHED_KS:
        yield (
            f"  {model} pass@{k}: qa_pass_at_k {board[k]:.6f}, by hand {pass_at(here, model, k):.6f}; of the shipped verdicts "
            f"{pass_at(published, model, k):.6f}, which call {len(MISLABELLED)} right programs failed"
        )


def compared(suite: str, metric: str, published: dict[Output, bool], known: set[tuple[str, str, int]]) -> int:
    """Print the comparison; the number of outputs that differ and are not known to."""
    found = scored(suite, metric)
    print(*told_models(found, published), sep="\n")
    other = differing(found, published)
    print(
        f"  differ: {len(other)}, of which {len(set(other) & known)} are known: {', '.join(f'{m} {i} {d}' for m, i, d in other)}"
    )
    if suite == "humaneval":
        print(*told_pass_rates(found, published), sep="\n")
    return len(set(other) - known)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--suite", action="append", choices=["gsm8k", "humaneval"], default=None)
    options = parser.parse_args()
    suites, data = options.suite or ["gsm8k", "humaneval"], options.data.absolute()
    unexpected = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, place in (("WAREHOUSE", "warehouse"), ("RESPONSES", "responses.sqlite")):
            os.environ[f"DTEF_{name}"] = f"{folder}/{place}"
        os.environ["DAGSTER_HOME"] = f"{folder}/dagster"
        os.environ.pop("DTEF_MODELS", None)
        if "gsm8k" in suites:
            home, sums = data / "gsm8k", of_sums(data / "gsm8k")
            files = [home / "outputs" / f"{name}.jsonl" for name in ("openai-gpt3-2021", "tora-70b")]
            run_suite(
                "gsm8k",
                home / "test.jsonl",
                files,
                ["--items", home / "index.json"],
                dict.fromkeys((one[0] for one in sums), 1),
            )
            unexpected += compared("gsm8k", "correct", sums, {("tora-70b", item, 0) for item in OTHERWISE_READ})
        if "humaneval" in suites:
            home, programs = data / "humaneval", of_programs(data / "humaneval")
            files = [home / "outputs" / f"{name}.jsonl" for name in ("reflexion", "codegen-16b")]
            draws = {model: 1 + max(one[2] for one in programs if one[0] == model) for model, _, _ in programs}
            run_suite("humaneval", home / "HumanEval.jsonl", files, [], draws)
            unexpected += compared("humaneval", "passed", programs, {("codegen-16b", *one) for one in MISLABELLED})
    sys.exit(1 if unexpected else 0)


if __name__ == "__main__":
    main()
