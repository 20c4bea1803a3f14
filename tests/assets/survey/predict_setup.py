"""What the tests of the predict stage share: surveys put into a warehouse, and a stand-in for gateway and response store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from assets.survey.predictor import PredictOptions, Predictor, windows
from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from resources.responses.store import RESPONSES
from resources.warehouse import Warehouse
from tests.made.scores import survey_rows

KEYS = ["S1/country:chile", "S1/country:kenya", "S2/country:kenya"]
LLM = ModelSpec(name="m", model="openai/m")
(PREVIOUS, UNIFORM) = load_models("", computed=BASELINES).resolve(["baseline/previous-round", "baseline/uniform"])


class Answers:
    """Stands in for gateway and store: answers all but the refused request keys, and remembers what it was asked."""

    def __init__(self, refused: Sequence[str] = ()) -> None:
        self.batches: list[list[Request]] = []
        self.refused = set(refused)
        self.answered: dict[str, Request] = {}

    def answer(self, requests: Sequence[Request]) -> Mapping[str, Failure]:
        self.batches.append(list(requests))
        self.answered.update({r.key: r for r in requests if r.key not in self.refused})
        return {r.key: Failure(r.key, "HTTP 400: no", 3) for r in requests if r.key in self.refused}

    def stored(self, keys: Sequence[str]) -> pa.Table:
        rows = [
            {"request_key": key, "text": "[50, 30, 20]", "attempts": 1, "latency_s": 0.1, "answered_at": datetime.now(UTC)}
            for key in keys
            if key in self.answered
        ]
        return pa.Table.from_pylist(rows, schema=RESPONSES)


def put(warehouse: Warehouse, key: str, *rows: dict[str, Any]) -> None:
    round_id, segment = split_partition_key(key)
    at = {"round": round_id, "segment": segment}
    survey = survey_rows(*({**at, "value": segment.partition(":")[2].title(), **row} for row in rows))
    warehouse.write("survey_responses", survey, **at)
    warehouse.write("blueprints", build_blueprints(survey, BlueprintOptions(("0", "2"))), **at)


def predict(house: Warehouse, answers: Answers, keys: Sequence[str], *models: ModelSpec, **options: Any) -> dict[str, pa.Table]:
    """All windows asked and written, as the asset does it."""
    predictor = Predictor.over(keys, house, PredictOptions(models, **options), answers.stored)
    made = {}
    for group in windows(predictor.plan(key) for key in keys):
        failures = predictor.ask(group, answers.answer)
        for plan in group:
            rows = made[plan.key] = predictor.rows(plan, failures)
            round_id, segment = split_partition_key(plan.key)
            house.write("predictions", rows, round=round_id, segment=segment, snapshot=predictor.options.snapshot)
    return made
