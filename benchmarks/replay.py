"""Replay of stored responses into `predictions`: what a rerun costs when nothing is left to ask.

    python -m benchmarks.replay [--responses 100000] [--characters 3000] [--against CHECKOUT] [--store URL]

Prints responses per second of the whole path (plan, look up, assemble, write), time of the processor and peak memory, each the best of three
runs in processes of their own: for the first time, and again over the predictions that are there then. `--characters`: of a question, which
stands in prompts. `--against`: another checkout, whose code is run by turns with this one's over the same data, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from assets.survey.predictor import PredictOptions, Predictor, windows
from benchmarks.memory import held_mb, modules_of
from dtef_pipeline.asking import calls
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Response
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.predictions import CALLS
from resources.gateway import Gateway
from resources.responses.store import ResponseStore
from resources.warehouse import Warehouse
from tests.made.scores import survey_rows

WORDS = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
ROUND, QUESTIONS, LEVELS = "B1", 100, ("0", "5")
MODELS = tuple(ModelSpec(name=f"m{i}", model=f"openai/m{i}", api_base="http://127.0.0.1:9/v1") for i in range(5))


def responses(house: Warehouse, segment: str) -> Iterator[Response]:
    at = datetime.now(UTC)
    blueprints = house.read("blueprints", round=ROUND, segment=segment)
    for model in MODELS:
        for request in CALLS.requests(blueprints, model, 1, "base"):
            yield Response(
                request_key=request.key,
                prompt_id=request.prompt_id,
                model=model.name,
                model_variant=model.variant,
                draw=0,
                snapshot="base",
                text="[45.2, 30.1, 24.7]",
                finish_reason="stop",
                served_model="m",
                fingerprint=None,
                prompt_tokens=400,
                completion_tokens=20,
                cost_usd=0.001,
                latency_s=0.5,
                attempts=1,
                answered_at=at,
            )


def text_of(number: int, characters: int) -> str:
    """A question: no two have the same words."""
    draw = random.Random(number)
    return f"Question number {number}? " + " ".join(draw.choices(WORDS.split(), k=characters // 6))[:characters].strip()


def prepare(root: Path, store: str, count: int, characters: int) -> None:
    """Surveys and blueprints in a warehouse, and all responses in the store."""
    house = Warehouse(root / "warehouse")
    segments = [f"country:c{i:03d}" for i in range(max(1, count // (QUESTIONS * len(LEVELS) * len(MODELS))))]
    for segment in segments:
        at = {"round": ROUND, "segment": segment, "value": segment}
        rows = [{**at, "question_text": text_of(q, characters)} for q in range(QUESTIONS)]
        survey = survey_rows(*rows)
        house.write("survey_responses", survey, round=ROUND, segment=segment)
        house.write("blueprints", build_blueprints(survey, BlueprintOptions(LEVELS)), round=ROUND, segment=segment)
    with ResponseStore(store) as responses_of_all:
        for segment in segments:
            responses_of_all.add(responses(house, segment))


def replay(house: Warehouse, store: ResponseStore, segments: Sequence[str]) -> int:
    """How many rows were written."""
    # A checkout of before there were these columns is given whole responses.
    columns = getattr(calls, "TAKEN_OVER", ())
    gateway = Gateway(store)
    options = PredictOptions(MODELS)
    predictor = Predictor(house, options, partial(store.responses, columns=columns) if columns else store.responses)
    rows = 0
    for group in windows(predictor.plan(f"{ROUND}/{segment}") for segment in segments):
        failures = predictor.ask(group, lambda requests: gateway.answer(requests).failures)
        for plan in group:
            table = predictor.rows(plan, failures)
            house.write("predictions", table, round=ROUND, segment=plan.key.partition("/")[2], snapshot="base")
            assert set(table["call_status"].to_pylist()) == {"answered"}
            rows += len(table)
    return rows


class Timed(NamedTuple):
    """What a replay took in a process of its own."""

    first: float
    """Responses a second where there are no predictions yet."""
    again: float
    """The same where the predictions of an earlier replay are there."""
    busy: float
    """Microseconds of the processor per response, of the first."""
    peak: float
    """MB of memory at most, all in all."""
    idle: float
    """MB of memory before the first."""


def work(root: Path, store: str) -> None:
    """In the process that is measured: a warm-up with one partition, then all of them twice. Prints a `Timed` as JSON."""
    house, stored = Warehouse(root / "warehouse"), ResponseStore(store)
    segments = house.values("blueprints", "segment", round=ROUND)
    replay(house, stored, segments[:1])
    shutil.rmtree(root / "warehouse" / "predictions")
    idle, rates = memory(), []
    busy = time.process_time()
    for _ in range(2):
        started = time.perf_counter()
        rows = replay(house, stored, segments)
        rates.append(rows / (time.perf_counter() - started))
        busy = busy if rates[1:] else (time.process_time() - busy) / rows * 1e6
    print(json.dumps(Timed(*rates, busy, memory(), idle)))


def memory() -> float:
    return held_mb(Path("/proc/self"))


def in_a_process(checkout: Path, root: Path, store: str) -> Timed:
    """By the code of a checkout, which need not know this benchmark."""
    shutil.rmtree(root / "warehouse" / "predictions", ignore_errors=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--work", str(root), "--store", store]
    environment = {**os.environ, "PYTHONPATH": modules_of(checkout)}
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-4000:])
    return Timed(*json.loads(done.stdout))


def best(runs: Sequence[Timed]) -> Timed:
    """Of each figure the best: what is worse was disturbed."""
    first, again, *least = zip(*runs, strict=True)
    return Timed(max(first), max(again), *map(min, least))


def told(name: str, found: Timed) -> None:
    print(
        f"{name}: {found.first:,.0f} responses a second, {found.again:,.0f} where predictions are there already; "
        f"processor {found.busy:.1f} us per response; peak {found.peak:,.0f} MB (of which {found.idle:,.0f} MB before it began)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--characters", type=int, default=0, help="of a question; a page has 3,000")
    parser.add_argument("--against", type=Path, help="another checkout, run by turns with this one")
    parser.add_argument("--store", default="", help="URL of an empty PostgreSQL database; else SQLite")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.store)
        return
    here = Path(__file__).resolve().parent.parent
    checkouts = [here, *([given.against.resolve()] if given.against else [])]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store = given.store or str(root / "responses.sqlite")
        prepare(root, store, given.responses, given.characters)
        turns = [[in_a_process(checkout, root, store) for checkout in checkouts] for _ in range(3)]
    found = [best(runs) for runs in zip(*turns, strict=True)]
    for checkout, one in zip(checkouts, found, strict=True):
        told("this checkout" if checkout == here else str(checkout), one)
    print("target: 50,000 a second on a quiet machine of 2 cores")
    if given.against:
        pairs = [(ours.first / theirs.first, theirs.busy / ours.busy) for ours, theirs in turns]
        faster, lighter = (sorted(ratios)[1] for ratios in zip(*pairs, strict=True))
        print(f"ratio to the other, median of three pairs: {faster:.2f} times as fast, 1/{lighter:.2f} of the processor")


if __name__ == "__main__":
    main()
