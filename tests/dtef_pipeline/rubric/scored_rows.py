"""Rows of scores, points and responses as tests write them, and the scores of one number per prompt, model and variant."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dtef_pipeline.rubric.functions import FunctionScore, prepare_function
from dtef_pipeline.rubric.scoring import compute_blueprint_scores, compute_coverage

RESPONSE_ROW = {
    "blueprint": "b",
    "snapshot": "s1",
    "prompt": "p",
    "model": "m",
    "model_variant": "m[temperature=0]",
    "temperature": 0.0,
    "system_index": 0,
    "draw": 0,
}
POINT_ROW = {**RESPONSE_ROW, "block": "should", "path": None, "weight": 1.0, "partial": False}


def points_of(*points: dict[str, Any], **keys: Any) -> pd.DataFrame:
    """One response's points, at positions in the order given unless they say otherwise."""
    rows = [{**POINT_ROW, "position": at, **keys, **point} for at, point in enumerate(points)]
    return pd.DataFrame(
        rows,
        columns=[*POINT_ROW, "position", "score", *sorted({n for r in rows for n in r} - {*POINT_ROW, "position", "score"})],
    )


def required(score: float | None, weight: float = 1.0, **rest: Any) -> dict[str, Any]:
    return {"score": score, "weight": weight, **rest}


def scores_of(*cells: dict[str, Any], weights: dict[str, float] | None = None) -> pd.DataFrame:
    """What `scores` makes of cells without an ideal answer, each with `score`: null is a response that is missing."""
    rows = [{**POINT_ROW, "position": 0, "reason": None, **cell} for cell in cells]
    frame = pd.DataFrame(rows, columns=[*POINT_ROW, "position", "reason", "score"])
    frame["reason"] = frame["score"].isna().map({True: "error", False: None})
    frame["model_variant"] = frame["model"] + "@" + frame["temperature"].astype(str)
    prompts = frame[["blueprint", "prompt"]].drop_duplicates()
    prompts = prompts.assign(
        weight=[(weights or {}).get(prompt, 1.0) for prompt in prompts["prompt"]], n_criteria=1, has_ideal=False
    )
    none = pd.DataFrame(columns=[*RESPONSE_ROW, "similarity"])
    return compute_blueprint_scores(
        frame[[*RESPONSE_ROW, "reason"]], prompts, compute_coverage(frame[frame["score"].notna()]), none
    )


def runs_of(model: str, *values: float, first: int = 0, snapshot: str = "s1", n_prompts: int = 1) -> list[dict[str, Any]]:
    """Cells of a model with each of the values in a blueprint of its own."""
    return [
        {"blueprint": f"b{at:02d}", "snapshot": snapshot, "model": model, "prompt": f"p{prompt}", "score": value}
        for at, value in enumerate(values, start=first)
        for prompt in range(n_prompts)
    ]


def evaluate(name: str, argument: Any, text: str, engine: Any = None, context: Any = None, **others: Any) -> FunctionScore:
    """What a function makes of one response."""
    return prepare_function(name, argument, engine, **others)(text, context)
