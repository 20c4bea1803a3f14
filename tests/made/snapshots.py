"""Rows of `scores` for a few nights, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any


def label(night: int) -> str:
    """Night 0 is the first of January."""
    return (date(2026, 1, 1) + timedelta(night)).isoformat()


def nights(
    means: Sequence[float], *, first: int = 0, questions: int = 10, model: str = "m", **given: Any
) -> list[dict[str, Any]]:
    """One night per mean: question i scores the mean plus .01 i, less their average, and `given` says what else a row has."""
    return [
        {
            "snapshot": label(first + night),
            "question_id": f"q{i}",
            "model": model,
            "model_variant": f"{model}[temperature=0]",
            "score": mean + 0.01 * (i - (questions - 1) / 2),
            "truth_id": "t",
            **given,
        }
        for night, mean in enumerate(means)
        for i in range(questions)
    ]
