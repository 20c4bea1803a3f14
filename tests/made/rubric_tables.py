"""Small tables of the rubric family: prompts, criteria, responses, judgements and points of invented blueprints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

CLASSES = {
    "CLASS_UNMET": 0.0,
    "CLASS_PARTIALLY_MET": 0.25,
    "CLASS_MODERATELY_MET": 0.5,
    "CLASS_MAJORLY_MET": 0.75,
    "CLASS_EXACTLY_MET": 1.0,
}
RESPONSE = ["blueprint", "snapshot", "prompt", "model", "model_variant", "temperature", "system_index", "draw"]
PLACE = ["block", "path", "position"]


class RubricTables(NamedTuple):
    prompts: pd.DataFrame
    criteria: pd.DataFrame
    responses: pd.DataFrame
    judgements: pd.DataFrame
    points: pd.DataFrame


def rubric_tables(
    prompts: int = 6, models: tuple[str, ...] = ("a", "b"), judges: tuple[str, ...] = ("s(x)", "p(x)")
) -> RubricTables:
    """Two required criteria, one of a path and one of should_not per prompt; every response judged by all judges, which mostly agree."""
    rng = np.random.default_rng(0)
    names = [(f"b{b}", f"p{p}") for b in range(2) for p in range(prompts)]
    of_prompts = pd.DataFrame(names, columns=["blueprint", "prompt"]).assign(
        weight=np.where(np.arange(len(names)) % 3 == 0, 2.0, 1.0),
        messages=[[{"role": "user", "text": f"Explain {p} of {b}."}] for b, p in names],
    )
    places = [("should", None, 0), ("should", None, 1), ("should", 0, 0), ("should_not", None, 0)]
    criteria = pd.DataFrame(
        [(*name, *place, "text", f"Criterion {at} of {name[1]}") for name in names for at, place in enumerate(places)],
        columns=["blueprint", "prompt", *PLACE, "kind", "text"],
    ).assign(weight=1.0)
    responses = pd.DataFrame(
        [
            (b, "base", p, m, f"{m}:t={t}", t, 0, 0, f"={m} says {b} {p} at {t}")
            for b, p in names
            for m in models
            for t in (0.0, 0.5)
        ],
        columns=[*RESPONSE, "text"],
    )
    units = responses.drop(columns="text").merge(criteria[["blueprint", "prompt", *PLACE]], on=["blueprint", "prompt"])
    level = rng.normal(2.2, 1.2, len(units))
    judgements = pd.concat([_judged(units, judge, level, rng) for judge in judges], ignore_index=True)
    met = judgements.groupby([*RESPONSE, *PLACE], dropna=False, sort=False)["score"].mean().reset_index()
    inverted = met["block"] == "should_not"
    score = np.where(inverted, 1 - met["score"], met["score"])
    points = met.assign(score=score, low=score, high=score, inverted=inverted, kind="text", weight=1.0, reason=None)
    return RubricTables(of_prompts, criteria, responses, judgements, points)


def _judged(units: pd.DataFrame, judge: str, level: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    place = np.clip(np.round(level + rng.normal(0, 0.6, len(units))), 0, 4).astype(int)
    return units.assign(
        judge=judge,
        approach={"s": "standard", "p": "prompt-aware", "h": "holistic"}[judge[0]],
        judge_model=judge[2:-1],
        judge_variant=f"{judge[2:-1]}:t=0",
        judge_draw=0,
        scale=5,
        score=place / 4,
        reason=None,
        cost_usd=0.001,
        **{"class": np.array(list(CLASSES))[place]},
    )
