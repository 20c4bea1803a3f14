"""How many tokens a model's response will have, before it is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dtef_pipeline.asking.models import ModelSpec

ESTIMATED: Mapping[str, str] = {
    "requests": "Prompts to be answered, each draw by itself; prompts of one text count once",
    "replayed": "Requests whose response is stored: they cost nothing",
    "calls": "Requests that are sent: all that are not replayed",
    "prompt_tokens": "Tokens of the prompts that are sent, estimated on the high side",
    "answer_tokens": "Tokens of the responses as they usually are: the mean of earlier ones, if there are any",
    "answer_tokens_most": "Tokens of the responses if each is as long as the model's max_tokens allow",
    "cost_usd": "US dollars for these calls with responses of the usual length",
    "cost_usd_most": "US dollars for these calls with the longest responses",
}
"""By name, the columns of an estimate."""


def answer_limits(prompts: pd.DataFrame, model: ModelSpec) -> pd.Series[float]:
    """For each prompt the most tokens that the response may have; NaN: as many as the model likes."""
    if model.is_local:  # it writes nothing but letters
        return prompts["answer_expected"]
    if model.max_tokens is None:
        return prompts["tokens"] * float("nan")
    return prompts["answer_tokens"].fillna(0).clip(lower=model.max_tokens).astype(float)


def expected_answers(prompts: pd.DataFrame, model: ModelSpec, measured: Mapping[tuple[str, str], float]) -> pd.Series[float]:
    """For each prompt the tokens of its response: the mean of earlier responses of the (variant, condition) if there are any, else by rule."""
    known = prompts["condition"].map(
        {condition: mean for (variant, condition), mean in measured.items() if variant == model.variant}
    )
    expected = known.astype(float).fillna(prompts["answer_expected"])
    most = answer_limits(prompts, model)
    return expected.where(most.isna() | (expected < most), most)
