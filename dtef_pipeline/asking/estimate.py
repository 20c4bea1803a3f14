"""How many tokens a model will answer with, before it is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dtef_pipeline.asking.models import ModelSpec


def answer_limits(prompts: pd.DataFrame, model: ModelSpec) -> pd.Series[float]:
    """Tokens the model may answer with, a prompt; NaN: as many as it likes."""
    if model.is_local:  # it writes nothing but letters
        return prompts["answer_expected"]
    if model.max_tokens is None:
        return prompts["tokens"] * float("nan")
    return prompts["answer_tokens"].fillna(0).clip(lower=model.max_tokens).astype(float)


def expected_answers(prompts: pd.DataFrame, model: ModelSpec, measured: Mapping[tuple[str, str], float]) -> pd.Series[float]:
    """Tokens each answer will take: the mean of earlier answers of the (variant, condition) if there are any, else what the rule says."""
    known = prompts["condition"].map(
        {condition: mean for (variant, condition), mean in measured.items() if variant == model.variant}
    )
    expected = known.astype(float).fillna(prompts["answer_expected"])
    most = answer_limits(prompts, model)
    return expected.where(most.isna() | (expected < most), most)
