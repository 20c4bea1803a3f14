"""Scores of whole models whose order turns with the weight of the similarity."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dtef_pipeline.rubric.aggregate import rescored


def model_rows(seed: int = 3, n_blueprints: int = 12) -> pd.DataFrame:
    """Rows of whole models: two whose order turns with the weight, one of few blueprints, one that was never scored, one under test."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_blueprints):
        for model, coverage, similarity in (
            ("covers", 0.9, 0.3),
            ("resembles", 0.5, 0.9),
            ("rare", 1.0, 1.0),
            ("mute", np.nan, np.nan),
        ):
            if model == "rare" and number >= 9:
                continue
            at_0, at_1 = np.clip(coverage + rng.normal(0, 0.05), 0, 1), np.clip(similarity + rng.normal(0, 0.05), 0, 1)
            numbers = {"coverage": at_0, "similarity": at_1, "at_0": at_0, "slope": at_1 - at_0, "hybrid": np.nan}
            key = {"level": "model", "blueprint": f"b{number}", "snapshot": "base", "model": model}
            counts = {"n_planned": 1, "n_scored": 1, "n_partial": 0, "n_unscored": 0, "n_responses": 4, "n_responses_scored": 4}
            empty = {"prompt": None, "model_variant": None, "temperature": np.nan, "system_index": None, "weight": np.nan}
            rows.append({**key, **empty, **numbers, **counts, "components": "both", "reasons": ()})
    return rescored(pd.DataFrame(rows), 0.35)
