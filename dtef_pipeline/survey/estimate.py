"""What a run will ask, before it is asked: its prompts, and how many tokens the responses usually take."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.keys import KEYS

# Tokens of a response as models write it, by a rule that errs on the high side: `45.2, ` is up to 5, a letter in quotes 4.
_A_PERCENTAGE, _A_LETTER, _AN_ARRAY, _A_KEY = 5, 4, 3, 5
_REASONING = 300

PROMPTS = ["prompt_id", "condition", "tokens", "answer_tokens", "answer_expected"]
_PROMPT_KEY = (*KEYS.space, "condition", "prompt_id")


def prompts_to_ask(blueprints: pa.Table, conditions: Sequence[BlueprintOptions]) -> pd.DataFrame:
    """The distinct prompts of each condition, in the order (round, segment, condition).

    `blueprints`: of any number of segments. Columns: `prompt_id`, `condition`, `tokens` (of the prompt, estimated), `answer_tokens` (that a
    model must be allowed; null: its own setting), `answer_expected` (tokens of a usual response, without what a model thinks unasked).
    """
    frame = blueprints.select([*_PROMPT_KEY, "tokens", "answer_tokens"]).to_pandas()
    frame["options"] = pc.list_value_length(blueprints["options"]).to_numpy()
    by_prompt = frame.groupby(list(_PROMPT_KEY), sort=True, dropna=False)
    prompts = by_prompt.agg(tokens=("tokens", "first"), answer_tokens=("answer_tokens", "first")).reset_index()
    # Where the context level makes no difference, a question of a batch has one row per level; so questions are counted within one level.
    levels = blueprints["context_level"].to_pandas().groupby([frame[key] for key in _PROMPT_KEY]).nunique()
    per_level = by_prompt["options"].agg(["sum", "size"]).div(levels.rename(None), axis=0).reset_index()
    prompts["answer_expected"] = 0.0
    for options in conditions:
        of = prompts["condition"] == options.condition
        prompts.loc[of, "answer_expected"] = _expected(options, per_level.loc[of, "sum"], per_level.loc[of, "size"])
    distinct: pd.DataFrame = prompts[PROMPTS].drop_duplicates(["condition", "prompt_id"], ignore_index=True)
    return distinct


def _expected(options: BlueprintOptions, choices: pd.Series[float], questions: pd.Series[float]) -> pd.Series[float]:
    """Tokens of a response about so many questions with so many options together."""
    answer = _A_PERCENTAGE * choices + _AN_ARRAY * questions
    if options.task == "synthetic-individuals":
        answer = questions * 0 + _A_LETTER * options.individuals + _AN_ARRAY
    if options.task == "batch":
        answer = answer + _A_KEY * questions + _AN_ARRAY
    fixed = _A_KEY * (options.structured + (options.reasoning == "cot"))
    return answer + fixed + (_REASONING if options.reasoning == "cot" else 0)
