"""The words of answer scales, from `scale_words.toml` in this folder: patterns of options and their places."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

Words = tuple[tuple[float, str], ...]

TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("dtef_pipeline.survey.answer_scales").joinpath("scale_words.toml").read_text(encoding="utf-8")
)


def join_alternatives(texts: str | Sequence[str]) -> str:
    """Return one pattern of alternatives, which the file has on one or on several lines."""
    return texts if isinstance(texts, str) else "|".join(texts)


def read_places(rows: Sequence[Sequence[Any]]) -> Words:
    """Return the place and the pattern of each row."""
    return tuple((place, join_alternatives(texts)) for place, *texts in rows)


FAMILIES = {name: read_places(rows) for name, rows in TABLES["families"].items()}
"""For each family the place of an option on the scale, and the pattern of its text."""
MODIFYING = (
    *("frequency", "share_of_time", "severity", "level", "class", "working", "kept", "action", "sufficiency", "ever", "rating"),
    "extent",
)
"""Families whose words modify others: `a little help`."""
