"""The partitions of the rubric family: one per blueprint."""

from __future__ import annotations

from dtef_pipeline.keys import Space

RUBRIC_SPACE = Space("rubric_blueprint", first="blueprint", second="", order=str.casefold)
"""One partition is one blueprint, by its id: `compass__introverted`."""
RUBRIC_CELL = ("prompt", "model", "model_variant", "temperature", "system_index")
"""What tells the responses of a blueprint's snapshot apart, but for repeated draws: one prompt asked of a model in one way."""
RUBRIC_RESPONSE = (*RUBRIC_CELL, "draw")
"""One response of a blueprint's snapshot."""
RUBRIC_POINT = ("prompt", "block", "path", "position")
"""One criterion of a blueprint, by its place."""


ITEM_KEYS = (
    "blueprint",
    "snapshot",
    "prompt",
    "model",
    "model_variant",
    "temperature",
    "system_index",
    "draw",
    "block",
    "path",
    "position",
)
