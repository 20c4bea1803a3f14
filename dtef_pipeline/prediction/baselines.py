"""Baseline predictors: models that ask nobody. They answer in the same form as a language model and are scored by the same code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.identity import digest, question_key, round_order
from dtef_pipeline.prediction.models import ModelSpec

Row = Mapping[str, Any]
Previous = Mapping[tuple[str, ...], Sequence[float]]
UNIFORM, POPULATION_MARGINAL = "baseline/uniform", "baseline/population-marginal"
PREVIOUS_ROUND = "baseline/previous-round"
DEFAULT_SEED = 0


def previous_answers(earlier: pa.Table, round_id: str) -> dict[tuple[str, ...], list[float]]:
    """Each question's answer in the latest earlier round of the same series, by `question_key`.

    `earlier`: `survey_responses` rows of the same segment in any rounds. Of duplicates within a round the first counts.
    """
    series = round_order(round_id)[0]
    rows = [
        row
        for row in earlier.select(["round", "question_order", "question_text", "options", "observed"]).to_pylist()
        if round_order(row["round"])[0] == series and round_order(row["round"]) < round_order(round_id)
    ]
    rows.sort(key=lambda row: (*round_order(row["round"])[1:], -row["question_order"]))
    return {question_key(row["question_text"], row["options"]): row["observed"] for row in rows}


def baseline_distribution(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float] | None:
    """The baseline's prediction for one `survey_responses` row, as fractions, or None where it has nothing to say.

    None leads to the status `missing`, never to a score of 0. Raises ConfigError for a baseline that does not exist.
    """
    if model.model not in _BASELINES:
        raise ConfigError(f"unknown baseline {model.model!r}; known: {', '.join(_BASELINES)}")
    return _BASELINES[model.model](model, row, draw, previous)


def as_response(distribution: Sequence[float]) -> str:
    """The distribution as a language model is asked to write it, at full precision."""
    total = sum(distribution)
    if not total > 0:
        raise DtefError(f"a baseline produced {list(distribution)}: not a distribution")
    return json.dumps([100 * share for share in distribution])


def why_missing(model: ModelSpec) -> str:
    """Why a baseline had nothing to say, for the row's `error`."""
    return _WHY_MISSING.get(model.model, "this baseline needs nothing and never misses")


def _uniform(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float]:
    k = len(row["options"])
    return [1 / k] * k


def _column(name: str) -> Callable[[ModelSpec, Row, int, Previous], Sequence[float] | None]:
    return lambda model, row, draw, previous: row[name]


def _dirichlet(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float]:
    seed = model.seed if model.seed is not None else DEFAULT_SEED
    entropy = int(digest(seed, row["round"], row["segment"], row["question_id"], draw), 16)
    return list(np.random.default_rng(entropy).dirichlet(np.ones(len(row["options"]))).tolist())


def _previous_round(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float] | None:
    return previous.get(question_key(row["question_text"], row["options"]))


_BASELINES: Mapping[str, Callable[[ModelSpec, Row, int, Previous], Sequence[float] | None]] = {
    UNIFORM: _uniform,
    POPULATION_MARGINAL: _column("population"),
    "baseline/leave-one-out-marginal": _column("others"),
    "baseline/shuffled-segment": _column("shuffled"),
    "baseline/dirichlet": _dirichlet,
    PREVIOUS_ROUND: _previous_round,
}

_WHY_MISSING = {
    "baseline/leave-one-out-marginal": "no other segment of this attribute answered the question",
    "baseline/shuffled-segment": "no other segment of the round answered the question",
    PREVIOUS_ROUND: "no readable earlier round of the series asked this segment the same question with the same options",
}
