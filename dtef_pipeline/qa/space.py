"""The partitions of the qa family: one per part of a suite."""

from __future__ import annotations

from dtef_pipeline.keys import Space

QA_SPACE = Space("dataset_part", first="suite", second="part", order=str.casefold)
"""One partition is one part of a suite: `mmlu/college_physics`, `gsm8k/all`, `socioscope/questions`."""
QA_RESPONSE_KEY = ("item_id", "condition", "model_variant", "draw")
"""What tells the responses of a part's snapshot apart."""
