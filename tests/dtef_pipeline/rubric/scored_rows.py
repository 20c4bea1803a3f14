"""Rows of scores, points and responses as tests write them: what a test does not name is the same everywhere."""

from __future__ import annotations

from typing import Any

import pandas as pd

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
POINT_ROW = {**RESPONSE_ROW, "block": "should", "path": None, "weight": 1.0}


def points_of(*points: dict[str, Any], **keys: Any) -> pd.DataFrame:
    """One response's points, at positions in the order given unless they say otherwise."""
    rows = [{**POINT_ROW, "position": at, **keys, **point} for at, point in enumerate(points)]
    return pd.DataFrame(
        rows,
        columns=[*POINT_ROW, "position", "score", *sorted({n for r in rows for n in r} - {*POINT_ROW, "position", "score"})],
    )


def required(score: float | None, weight: float = 1.0, **rest: Any) -> dict[str, Any]:
    return {"score": score, "weight": weight, **rest}


def path(number: int, *scores: float | tuple[float | None, float] | None) -> list[dict[str, Any]]:
    """The points of one alternative path, each a score or (score, weight)."""
    pairs = [score if isinstance(score, tuple) else (score, 1.0) for score in scores]
    return [{"score": s, "weight": w, "path": number, "block": "should"} for s, w in pairs]
