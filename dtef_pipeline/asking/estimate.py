"""How many tokens a model's response will have, before it is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dtef_pipeline.asking.models import ModelSpec


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
