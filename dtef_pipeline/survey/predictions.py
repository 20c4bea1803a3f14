"""Predictions: the prompts of a run, the predictions of baselines, and the usual tokens of a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.baselines import (
    NEIGHBOUR_BASELINES,
    Previous,
    RoundAnswers,
    explain_missing_prediction,
    format_as_response,
    predict_distribution,
    predict_from_neighbours,
)
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.wording import is_one_distribution
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import EVERYTHING, Sample
from dtef_pipeline.survey.tables import PREDICTIONS, READING


def list_options_in_prompt_order(options: Sequence[str], reading: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the options in the order of the prompt; none if the response is not one distribution over them."""
    if not is_one_distribution(reading):
        return ()
    order = reading["order"] if reading else None
    return tuple(options[place] for place in order) if order else tuple(options)


CALLS = CallTable(
    PREDICTIONS,
    prompt_columns=(*KEYS.cell, "prompt_id", "blueprint_hash", "reading"),
    # One text can hold several questions, and stand at two context levels where there is no question to show.
    prompt_key=("prompt_id", KEYS.item, *KEYS.asked),
    list_options=list_options_in_prompt_order,
)
"""How `predictions` follow from `blueprints`."""


def has_duplicates(survey: pa.Table) -> bool:
    """Return whether the segment's `survey_responses` contain a question twice. Otherwise no two of its prompts have the same text."""
    return bool(survey["duplicate_of"].null_count < len(survey))


def select_prompts(
    blueprints: pa.Table,
    survey: pa.Table,
    *,
    conditions: Sequence[str] = (),
    context_levels: Sequence[str] = (),
    sample: Sample = EVERYTHING,
) -> pa.Table:
    """Return the blueprints of these conditions and context levels (empty: all), and of the `sample` drawn from the round.

    `survey`: the segment's `survey_responses`. Raises ConfigError, with the existing ones, for a condition or level without blueprints.
    """
    for column, names in (("condition", conditions), ("context_level", context_levels)):
        existing = pc.unique(blueprints[column]).to_pylist()
        if absent := sorted(set(names) - set(existing)):
            noun = column.replace("_", " ")
            raise ConfigError(f"no blueprints of {noun} {', '.join(absent)}; made so far: {', '.join(sorted(existing))}")
        if names:
            blueprints = blueprints.filter(pc.is_in(blueprints[column], pa.array(list(names))))
    if sample == EVERYTHING:
        return blueprints
    return blueprints.filter(pc.is_in(blueprints["question_id"], sample.select_questions(survey)))


def build_baseline_rows(
    prompts: pa.Table,
    survey: pa.Table,
    model: ModelSpec,
    draws: int,
    snapshot: str,
    previous: Previous,
    answers: RoundAnswers | None = None,
) -> pa.Table:
    """Return the rows of a baseline. A row without a prediction is `missing`, with the reason.

    Some baselines need `previous` or `answers` (None: no other segment). In any form of prompt, a baseline predicts one distribution over
    the options in the survey's order.
    """
    rows = CALLS.keys(prompts, model, draws, snapshot)
    questions = prompts["question_id"].to_pylist()
    context = [tuple(question_ids or ()) for question_ids in prompts["context_question_ids"].to_pylist()]
    if model.model in NEIGHBOUR_BASELINES:
        items = list(zip(questions, context, strict=True))
        predicted = predict_from_neighbours(model, items, survey, answers or RoundAnswers.build_arrays(survey))
        distributions = [distribution for distribution in predicted for _ in range(draws)]
    else:
        by_question = {row["question_id"]: row for row in survey.to_pylist()}
        distributions = [
            predict_distribution(model, by_question[question], draw, previous)
            for question, draw in zip(rows["question_id"].to_pylist(), rows["draw"].to_pylist(), strict=True)
        ]
    texts = [None if distribution is None else format_as_response(distribution) for distribution in distributions]
    reasons = [explain_missing_prediction(model, context=bool(shown)) for shown in context for _ in range(draws)]
    return CALLS.complete_rows(
        rows,
        {
            "reading": pa.nulls(len(rows), READING),
            "call_status": ["missing" if text is None else "answered" for text in texts],
            "response": texts,
            "error": [reason if text is None else None for text, reason in zip(texts, reasons, strict=True)],
            "cost_usd": [0.0] * len(texts),
        },
    )


# Tokens of a response as models write it, by a rule that errs on the high side: `45.2, ` is up to 5, a letter in quotes 4.
_A_PERCENTAGE, _A_LETTER, _AN_ARRAY, _A_KEY = 5, 4, 3, 5
_REASONING = 300
_PROMPT_KEY = ["condition", "prompt_id"]


def usual_reply_tokens(prompts: pa.Table) -> dict[tuple[str, str], float]:
    """Return the tokens of a usual response, without reasoning, by condition and prompt id. `prompts`: blueprints of one segment."""
    frame = prompts.select([*_PROMPT_KEY, "context_level", "recipe"]).to_pandas()
    frame["options"] = pc.list_value_length(prompts["options"]).to_numpy()
    by_prompt = frame.groupby(_PROMPT_KEY)
    # Where the context level makes no difference, a question of a batch has one row per level; so questions are counted within one level.
    counts = by_prompt["options"].agg(["sum", "size"]).div(by_prompt["context_level"].nunique(), axis=0)
    tokens: dict[Any, float] = {}
    for condition, recipe in frame.groupby("condition")["recipe"].first().items():
        part = counts.loc[[condition]]
        tokens |= _estimate_answer_tokens(BlueprintOptions.parse_recipe(recipe, ["0"]), part["sum"], part["size"]).to_dict()
    return tokens


def _estimate_answer_tokens(
    options: BlueprintOptions, choices: pd.Series[float], questions: pd.Series[float]
) -> pd.Series[float]:
    """Return the tokens of a response to `questions` questions with `choices` options."""
    answer = _A_PERCENTAGE * choices + _AN_ARRAY * questions
    if options.task == "synthetic-individuals":
        answer = questions * 0 + _A_LETTER * options.individuals + _AN_ARRAY
    if options.task == "batch":
        answer = answer + _A_KEY * questions + _AN_ARRAY
    fixed = _A_KEY * (options.structured + (options.reasoning == "cot"))
    return answer + fixed + (_REASONING if options.reasoning == "cot" else 0)
