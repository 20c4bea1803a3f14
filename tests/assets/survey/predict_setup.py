"""What the tests of the predict stage share: surveys put into a warehouse, and a stand-in for gateway and response store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from assets.engine.asking import answer_calls
from assets.stage.partitions import split_batches
from assets.survey.predictor import Predictor, SegmentPredictions
from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.settings import SurveySettings
from resources.responses.store import RESPONSES
from resources.warehouse import Warehouse
from tests.made.scores import survey_rows

KEYS = ["S1/country:chile", "S1/country:kenya", "S2/country:kenya"]
LLM = ModelSpec(name="m", model="openai/m")
(UNIFORM,) = load_models("", computed=BASELINES).resolve(["baseline/uniform"])


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

    def stored(self, keys: Sequence[str], columns: Sequence[str] = ()) -> pa.Table:
        rows = [
            {"request_key": key, "text": "[50, 30, 20]", "attempts": 1, "latency_s": 0.1, "answered_at": datetime.now(UTC)}
            for key in keys
            if key in self.answered
        ]
        found = pa.Table.from_pylist(rows, schema=RESPONSES)
        return found.select(list(columns)) if columns else found


def put(warehouse: Warehouse, key: str, *rows: dict[str, Any]) -> None:
    round_id, segment = split_partition_key(key)
    at = {"round": round_id, "segment": segment}
    survey = survey_rows(*({**at, "value": segment.partition(":")[2].title(), **row} for row in rows))
    warehouse.write("survey_responses", survey, **at)
    warehouse.write("blueprints", build_blueprints(survey, BlueprintOptions(("0", "2"))), **at)


def settings_of_run(**given: Any) -> SurveySettings:
    """Without conditions given: those that were made."""
    return SurveySettings(**{"conditions": [], **given})


def predict(
    house: Warehouse, answers: Answers, keys: Sequence[str], *models: ModelSpec, at_a_time: int = 5_000, **given: Any
) -> dict[str, pa.Table]:
    """All windows asked and written, as the engine does it."""
    settings = settings_of_run(**given)
    predictor = Predictor(house, settings, models, answers.stored, keys=keys)
    segments = [SegmentPredictions(predictor, key) for key in keys]
    made = {}
    for group in split_batches(segments, [predictor.sizes.get(key, 0) for key in keys], at_a_time):
        requests = [segment.requests() for segment in group]
        wanted = list(chain.from_iterable(segment.keys() for segment in group))
        stored, failures = answer_calls(requests, wanted, answers.answer, answers.stored)
        for segment in group:
            rows = made[segment.key] = segment.merge_with_stored(segment.rows(stored, failures))["predictions"]
            round_id, name = split_partition_key(segment.key)
            house.write("predictions", rows, round=round_id, segment=name, snapshot=settings.snapshot)
    return made
