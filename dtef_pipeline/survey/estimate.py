"""Usual numbers of tokens of responses, for estimates before a run."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.survey.blueprint.options import BlueprintOptions

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
