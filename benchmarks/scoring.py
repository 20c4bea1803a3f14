"""One million clean array responses parsed and scored: all at once, and one by one by the same code, with the identical result.

Prints responses per second of parsing alone, of parsing with the metrics and of the whole `score_predictions` over rows of the real
tables, the ratio to the row-by-row path (over a sample of the rows), lines per second of `dtef score`, and the peak memory of the whole run in
a process of its own. Run: `python benchmarks/scoring.py [ROWS]`.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.survey.reading.parsing import parse_response, parse_responses
from dtef_pipeline.survey.scoring.json_lines import score_lines
from dtef_pipeline.survey.scoring.metrics import measure
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.tables import METRICS, PREDICTIONS, SURVEY_RESPONSES

OPTIONS = ["Strongly disagree", "Somewhat disagree", "Somewhat agree", "Strongly agree"]
SEGMENTS, QUESTIONS, SAMPLE = 49, 116, 10_000


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


def best(times: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of several goes: the others were disturbed."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def at_once(texts: pa.Array, options: pa.Array, observed: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    parsed = parse_responses(texts, options)
    return measure(parsed.distribution.values.to_numpy().reshape(len(texts), -1), observed)


def one_by_one(texts: list[str], observed: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    found = [parse_response(text, len(OPTIONS), OPTIONS) for text in texts]
    return [measure(parsed.distribution, row) for parsed, row in zip(found, observed, strict=True) if parsed.distribution]


def memory_of_the_run(rows: int) -> float:
    """Peak MB of a process that makes the tables and scores them."""
    rng = np.random.default_rng(1)
    asked = survey(rng)
    made = predictions(asked, responses(rng, rows))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    score_predictions(made, asked)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of score_predictions over {rows:,} rows: {peak:,.0f} MB (of which {before:,.0f} MB to make the tables)")
    return peak


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    alone = multiprocessing.get_context("spawn").Process(target=memory_of_the_run, args=(rows,))
    alone.start()
    alone.join()
    rng = np.random.default_rng(1)
    asked = survey(rng)
    texts = responses(rng, rows)
    place = pa.array(np.arange(rows) % len(asked))
    options = asked["options"].combine_chunks().take(place)
    observed = asked["observed"].combine_chunks().take(place).values.to_numpy().reshape(rows, -1)
    parsing = best(3, lambda: parse_responses(texts, options))
    both = best(3, lambda: at_once(texts, options, observed))
    sample = texts[:SAMPLE].to_pylist()
    by_row = best(2, lambda: one_by_one(sample, observed[:SAMPLE])) * rows / SAMPLE
    columns, singles = at_once(texts, options, observed), one_by_one(sample, observed[:SAMPLE])
    same = all(columns[name][: len(sample)].tolist() == [float(one[name]) for one in singles] for name in METRICS)
    made = predictions(asked, texts)
    whole = best(3, lambda: score_predictions(made, asked))
    lines = [json.dumps({"response": text, "expected": [40, 35, 15, 10], "options": OPTIONS}) for text in sample]
    scored = best(3, lambda: sum(1 for _ in score_lines(lines)))
    print(
        f"parse alone: {rows / parsing:,.0f} a second; parse and metrics: {rows / both:,.0f}; score_predictions: {rows / whole:,.0f}"
    )
    print(f"ratio to row by row, parse and metrics: {by_row / both:.0f}; results identical: {same}")
    print(f"dtef score: {len(lines) / scored:,.0f} lines per second")


if __name__ == "__main__":
    main()
