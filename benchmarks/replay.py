"""Replay of stored responses into `predictions`: what a rerun costs when nothing is left to ask.

    python -m benchmarks.replay [--responses 100000]

Prints rows per second of the whole path (plan, look up, assemble, write) and the ratio to reading the same responses from the store alone.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from assets.survey.predictor import PredictOptions, Predictor, windows
from dtef_pipeline.asking.calls import TAKEN_OVER
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


def responses(house: Warehouse, segments: list[str]) -> Iterator[Response]:
    at = datetime.now(UTC)
    for segment in segments:
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


def prepared(root: Path, count: int, characters: int = 0) -> tuple[Warehouse, ResponseStore, list[str]]:
    house = Warehouse(root / "warehouse")
    segments = [f"country:c{i:03d}" for i in range(max(1, count // (QUESTIONS * len(LEVELS) * len(MODELS))))]
    for segment in segments:
        at = {"round": ROUND, "segment": segment, "value": segment}
        rows = [{**at, "question_text": text_of(q, characters)} for q in range(QUESTIONS)]
        survey = survey_rows(*rows)
        house.write("survey_responses", survey, round=ROUND, segment=segment)
        house.write("blueprints", build_blueprints(survey, BlueprintOptions(LEVELS)), round=ROUND, segment=segment)
    store = ResponseStore(root / "responses.sqlite")
    store.add(responses(house, segments))
    return house, store, segments


def replay(house: Warehouse, store: ResponseStore, segments: list[str]) -> int:
    gateway = Gateway(store)
    options = PredictOptions(MODELS)
    predictor = Predictor(house, options, partial(store.responses, columns=TAKEN_OVER))
    rows = 0
    for group in windows(predictor.plan(f"{ROUND}/{segment}") for segment in segments):
        failures = predictor.ask(group, lambda requests: gateway.answer(requests).failures)
        for plan in group:
            table = predictor.rows(plan, failures)
            house.write("predictions", table, round=ROUND, segment=plan.key.partition("/")[2], snapshot="base")
            assert set(table["call_status"].to_pylist()) == {"answered"}
            rows += len(table)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--responses", type=int, default=100_000)
    count = parser.parse_args().responses
    with tempfile.TemporaryDirectory() as folder:
        house, store, segments = prepared(Path(folder), count)
        started = time.perf_counter()
        rows = replay(house, store, segments)
        took = time.perf_counter() - started
        keys = [r.request_key for r in responses(house, segments)]
        started = time.perf_counter()
        assert len(store.responses(keys)) == rows
        alone = time.perf_counter() - started
        store.close()
    print(f"replayed {rows:,} responses into predictions in {took:.2f} s: {rows / took:,.0f} a second (target 20,000)")
    print(f"reading them from the store alone: {alone:.2f} s; ratio replay / reading {took / alone:.2f}")


if __name__ == "__main__":
    main()
