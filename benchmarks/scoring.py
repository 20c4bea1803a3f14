"""One million clean array responses parsed and scored: all at once, and one by one by the same code, with the identical result.

Prints responses per second of parsing alone, of parsing with the metrics and of the whole `score_predictions` over rows of the real
tables, the ratio to the row-by-row path (over a sample of the rows), lines per second of `dtef score`, and the peak memory of
`score_predictions` in a process of its own. Run: `python benchmarks/scoring.py [ROWS]`.

`--against CHECKOUT` compares this checkout with another one, which may be older: each is run three times in turn, in processes of their
own, by this Python and its packages. The ratios are of the best rate of each, by the clock and per second of
processor time: where the machine has other work, the second is the one to go by.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.memory import held_mb, modules_of


def of_checkout(name: str, *modules: str) -> Any:
    """The name from the first of these modules that there is: older checkouts have other ones."""
    for module in modules:
        try:
            return getattr(import_module(f"dtef_pipeline.{module}"), name)
        except ModuleNotFoundError:
            continue
    raise SystemExit(f"{name} is in none of {', '.join(modules)}")


parse_response, parse_responses = (
    of_checkout(name, "survey.reading.parsing", "prediction.parsing") for name in ("parse_response", "parse_responses")
)
score_lines = of_checkout("score_lines", "survey.scoring.json_lines", "scoring.lines")
measure = of_checkout("measure", "survey.scoring.metrics", "scoring.metrics")
score_predictions = of_checkout("score_predictions", "survey.scoring.score", "scoring.score")
METRICS, PREDICTIONS, SURVEY_RESPONSES = (
    of_checkout(name, "survey.tables", "tables") for name in ("METRICS", "PREDICTIONS", "SURVEY_RESPONSES")
)

OPTIONS = ["Strongly disagree", "Somewhat disagree", "Somewhat agree", "Strongly agree"]
SEGMENTS, QUESTIONS, SAMPLE = 49, 116, 10_000
RATES = ("parse alone", "parse and metrics", "score_predictions")


def survey(rng: np.random.Generator) -> pa.Table:
    """A round of the size of GD4: 49 segments x 116 questions."""
    shares = rng.dirichlet(np.full(len(OPTIONS), 3.0), size=(SEGMENTS, QUESTIONS)).tolist()
    rows = [
        {
            "round": "GD4",
            "segment": f"country:c{s}",
            "attribute": "country",
            "value": f"C{s}",
            "question_id": f"question-{q}",
            "question_order": q,
            "question_text": f"How far do you agree with statement number {q} of this synthetic survey?",
            "options": OPTIONS,
            "scale": "ordinal",
            "dont_know": [False] * len(OPTIONS),
            "observed": shares[s][q],
            "n": 57,
            "circular": False,
            "population": shares[0][q],
        }
        for s in range(SEGMENTS)
        for q in range(QUESTIONS)
    ]
    return pa.Table.from_pylist(rows, schema=SURVEY_RESPONSES)


def responses(rng: np.random.Generator, rows: int) -> pa.Array:
    """Clean arrays as models write them: percentages with one digit."""
    shares = 100 * rng.dirichlet(np.full(len(OPTIONS), 2.0), size=rows)
    return pa.array(["[{:.1f}, {:.1f}, {:.1f}, {:.1f}]".format(*row) for row in shares.tolist()], pa.string())


def predictions(asked: pa.Table, texts: pa.Array) -> pa.Table:
    """Rows of schema PREDICTIONS, a model's answers to every question of every segment over and over."""
    rows = len(texts)
    place = pa.array(np.arange(rows) % len(asked))
    known: dict[str, Any] = {name: asked[name].take(place) for name in ("round", "segment", "question_id")}
    constant = {
        "snapshot": "base",
        "context_level": "5",
        "condition": "distribution/attribute-label",
        "blueprint_hash": "0" * 16,
        "model": "gpt-4.1-mini",
        "model_variant": "openai/gpt-4.1-mini?temperature=0",
        "call_status": "answered",
        "finish_reason": "stop",
        "served_model": "gpt-4.1-mini-2025-04-14",
    }
    known |= {name: pa.repeat(pa.scalar(value), rows) for name, value in constant.items()}
    known["prompt_id"] = pa.array([f"{i:032x}" for i in range(rows)])
    known["response"] = texts
    known["draw"] = pa.array(np.zeros(rows, dtype=np.int32))
    return pa.table([known.get(f.name, pa.nulls(rows, f.type)) for f in PREDICTIONS], schema=PREDICTIONS)


def best(times: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of several goes: the others were disturbed."""
    seconds = []
    for _ in range(times):
        started = clock()
        work()
        seconds.append(clock() - started)
    return min(seconds)


def at_once(texts: pa.Array, options: pa.Array, observed: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    parsed = parse_responses(texts, options)
    return measure(parsed.distribution.values.to_numpy().reshape(len(texts), -1), observed)


def one_by_one(texts: list[str], observed: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    found = [parse_response(text, len(OPTIONS), OPTIONS) for text in texts]
    return [measure(parsed.distribution, row) for parsed, row in zip(found, observed, strict=True) if parsed.distribution]


def peak() -> float:
    """MB that this process has held at most."""
    return held_mb(Path("/proc/self"))


def measured(rows: int) -> dict[str, float]:
    """Responses per second by name, and the peak MB of making the tables and scoring them."""
    rng = np.random.default_rng(1)
    asked = survey(rng)
    made = predictions(asked, responses(rng, rows))
    before = peak()
    score_predictions(made, asked)
    memory = {"MB of the tables": before, "MB with the scores": peak()}
    texts, options, observed = columns(asked, made["response"].combine_chunks())
    works: list[Callable[[], object]] = [
        lambda: parse_responses(texts, options),
        lambda: at_once(texts, options, observed),
        lambda: score_predictions(made, asked),
    ]
    of_wall = {name: rows / best(3, work) for name, work in zip(RATES, works, strict=True)}
    of_processor = {
        f"{name}, processor": rows / best(3, work, time.process_time) for name, work in zip(RATES, works, strict=True)
    }
    return of_wall | of_processor | memory


def columns(asked: pa.Table, texts: pa.Array) -> tuple[pa.Array, pa.Array, np.ndarray[Any, Any]]:
    """Texts with the options and the observed distribution of each."""
    place = pa.array(np.arange(len(texts)) % len(asked))
    options = asked["options"].combine_chunks().take(place)
    return texts, options, asked["observed"].combine_chunks().take(place).values.to_numpy().reshape(len(texts), -1)


def in_a_process(checkout: Path, rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, str(rows), "--measure"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": modules_of(checkout)}, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(other: Path, rows: int) -> None:
    here = Path(__file__).resolve().parent.parent
    runs = [(in_a_process(here, rows), in_a_process(other, rows)) for _ in range(3)]
    for name in RATES:
        new, old = (max(run[side][name] for run in runs) for side in (0, 1))
        less, more = (max(run[side][f"{name}, processor"] for run in runs) for side in (0, 1))
        print(
            f"{name}: {new / old:.2f} times the rate ({new:,.0f} and {old:,.0f} a second; {less / more:.2f} of processor time)"
        )
    for name in ("MB of the tables", "MB with the scores"):
        print(f"{name}: {min(run[0][name] for run in runs):,.0f} and {min(run[1][name] for run in runs):,.0f}")


def show(rows: int) -> None:
    found = in_a_process(Path(__file__).resolve().parent.parent, rows)
    print("; ".join(f"{name}: {found[name]:,.0f} a second" for name in RATES))
    print(f"memory: {found['MB with the scores']:,.0f} MB (of which {found['MB of the tables']:,.0f} MB to make the tables)")
    rng = np.random.default_rng(1)
    asked = survey(rng)
    texts, options, observed = columns(asked, responses(rng, SAMPLE))
    listed = texts.to_pylist()
    by_row = best(2, lambda: one_by_one(listed, observed)) * found["parse and metrics"] / SAMPLE
    together, singles = at_once(texts, options, observed), one_by_one(listed, observed)
    same = all(together[name].tolist() == [float(one[name]) for one in singles] for name in METRICS)
    print(f"ratio to row by row, parse and metrics: {by_row:.0f}; results identical: {same}")
    lines = [json.dumps({"response": text, "expected": [40, 35, 15, 10], "options": OPTIONS}) for text in listed]
    scored = best(3, lambda: sum(1 for _ in score_lines(lines)))
    print(f"dtef score: {len(lines) / scored:,.0f} lines per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, to compare with")
    parser.add_argument("--measure", action="store_true", help="print the figures of one process as JSON")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.rows)))
    elif given.against:
        compare(given.against.resolve(), given.rows)
    else:
        show(given.rows)


if __name__ == "__main__":
    main()
