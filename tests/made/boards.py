"""Boards written by hand, for the charts."""

from __future__ import annotations

import numpy as np
import pandas as pd

MARGINAL, OTHERS = "baseline/population-marginal", "baseline/leave-one-out-marginal"


def board(**given: object) -> pd.DataFrame:
    """Rows of a leaderboard: two baselines, a model without an interval, one without a score."""
    rows = pd.DataFrame(
        {
            "model": [MARGINAL, OTHERS, "gpt", "<b>"],
            "rank": [1, 2, 3, None],
            "score": [0.8, 0.75, 0.7, np.nan],
            "score_low": [0.78, 0.7, np.nan, np.nan],
            "score_high": [0.82, 0.78, np.nan, np.nan],
            "ceiling": [0.9, 0.9, 0.9, np.nan],
            "context_level": "all",
            "condition": "c",
        }
    )
    return rows.assign(model_variant=rows["model"], **given)


def segments() -> pd.DataFrame:
    """Rows of a board by segment: two models in two segments."""
    rows = [
        (segment, model, 0.1 * at + 0.5)
        for at, segment in enumerate(("country:kenya", "ageGroup:18-25"))
        for model in ("gpt", "<b>")
    ]
    frame = pd.DataFrame(rows, columns=["segment", "model", "score"])
    return frame.assign(
        attribute=frame["segment"].str.split(":").str[0], value=frame["segment"], context_level="0", condition="c"
    )
