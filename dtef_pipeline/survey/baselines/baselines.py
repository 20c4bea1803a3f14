"""Baseline predictors: models computed from the survey. They respond in the form of a language model and are scored by the same code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.baselines.names import (
    BASELINES,
    DEFAULT_SEED,
    DIRICHLET,
    EMPIRICAL_BAYES,
    LEAVE_ONE_OUT,
    NEAREST_SEGMENTS,
    POPULATION_MARGINAL,
    PREVIOUS_ROUND,
    SHUFFLED_SEGMENT,
    UNIFORM,
)
from dtef_pipeline.survey.baselines.neighbours import NO_CONTEXT, NO_NEIGHBOUR, Prediction, Prompt, RoundAnswers
from dtef_pipeline.survey.identity import make_question_key, make_round_order

Row = Mapping[str, Any]
Previous = Mapping[tuple[str, ...], Sequence[float]]
NEIGHBOUR_BASELINES = (NEAREST_SEGMENTS, EMPIRICAL_BAYES)
"""Baselines that read the other segments of the round and the context questions of the prompt."""
_PROMPTS_AT_A_TIME = 500
"""Prompts answered at a time: bounds the memory of many context questions and many segments."""


PREVIOUS_COLUMNS = ("round", "question_order", "question_text", "options", "observed")
"""Columns of `survey_responses` that `load_previous_answers` needs."""


def load_previous_answers(earlier: pa.Table, round_id: str) -> dict[tuple[str, ...], list[float]]:
    """Return each question's answer in the latest earlier round of the series, by `make_question_key`.

    `earlier` has `survey_responses` rows of the same segment in any rounds. The first of duplicates within a round counts.
    """
    series = make_round_order(round_id)[0]
    rows = [
        row
        for row in earlier.select(list(PREVIOUS_COLUMNS)).to_pylist()
        if make_round_order(row["round"])[0] == series and make_round_order(row["round"]) < make_round_order(round_id)
    ]
    rows.sort(key=lambda row: (*make_round_order(row["round"])[1:], -row["question_order"]))
    return {make_question_key(row["question_text"], row["options"]): row["observed"] for row in rows}


def predict_distribution(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float] | None:
    """Return the baseline's prediction for a `survey_responses` row, as fractions, or None if it has no prediction.

    None leads to the status `missing`, never to a score of 0. NEIGHBOUR_BASELINES predict prompts, not rows; see `predict_from_neighbours`.
    Raises ConfigError for an unknown baseline.
    """
    if model.model in _COLUMNS:
        distribution: Sequence[float] | None = row[_COLUMNS[model.model]]
        return distribution
    if model.model == UNIFORM:
        return [1 / len(row["options"])] * len(row["options"])
    if model.model == PREVIOUS_ROUND:
        return previous.get(make_question_key(row["question_text"], row["options"]))
    if model.model == DIRICHLET:
        return _draw_dirichlet(model, row, draw)
    raise ConfigError(f"unknown baseline {model.model!r}; known: {', '.join(BASELINES)}")


def format_as_response(distribution: Sequence[float]) -> str:
    """Return the distribution in the form required by prompts, at full precision."""
    total = sum(distribution)
    if not total > 0:
        raise DtefError(f"a baseline produced {list(distribution)}, which is not a distribution")
    return json.dumps([100 * share for share in distribution])


def predict_from_neighbours(
    model: ModelSpec, prompts: Sequence[Prompt], survey: pa.Table, answers: RoundAnswers
) -> list[Prediction]:
    """Return the predictions of one of the NEIGHBOUR_BASELINES for each prompt, as fractions, or None without a prediction.

    `survey` has the segment's `survey_responses`, `answers` those of the round's segments. Equal prompts are computed once.
    """
    neighbours = answers.select_neighbours(survey)
    predict = neighbours.nearest if model.model == NEAREST_SEGMENTS else neighbours.predict_shrunken
    distinct = list(dict.fromkeys(prompts))
    predicted: dict[Prompt, Prediction] = {}
    for start in range(0, len(distinct), _PROMPTS_AT_A_TIME):
        block = distinct[start : start + _PROMPTS_AT_A_TIME]
        predicted.update(zip(block, predict(block), strict=True))
    return [predicted[prompt] for prompt in prompts]


def explain_missing_prediction(model: ModelSpec, *, context: bool = True) -> str:
    """Return why a baseline has no prediction. `context`: whether the prompt shows context questions."""
    if model.model == NEAREST_SEGMENTS and not context:
        return NO_CONTEXT
    return _WHY_MISSING.get(model.model, "this baseline needs nothing and never misses")


def _draw_dirichlet(model: ModelSpec, row: Row, draw: int) -> Sequence[float]:
    seed = model.seed if model.seed is not None else DEFAULT_SEED
    entropy = int(digest(seed, row["round"], row["segment"], row["question_id"], draw), 16)
    return list(np.random.default_rng(entropy).dirichlet(np.ones(len(row["options"]))).tolist())


_COLUMNS = {POPULATION_MARGINAL: "population", LEAVE_ONE_OUT: "leave_one_out_marginal", SHUFFLED_SEGMENT: "shuffled"}
"""Columns of `survey_responses` that are the predictions of baselines."""
_WHY_MISSING = {
    POPULATION_MARGINAL: "no other segment of the round answered the question",
    LEAVE_ONE_OUT: "no other segment of this attribute answered the question",
    EMPIRICAL_BAYES: "no other segment of this attribute answered the question",
    NEAREST_SEGMENTS: NO_NEIGHBOUR,
    SHUFFLED_SEGMENT: "no other segment of the round answered the question",
    PREVIOUS_ROUND: "no readable earlier round of the series asked this segment the same question with the same options",
}
