"""Rows that were asked alike: what the report never mixes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import pandas as pd

from dtef_pipeline.report.markup import Group
from dtef_pipeline.survey.blueprint.options import ContextLevel


def asked_alike(frame: pd.DataFrame, *, richest: bool = False) -> Iterator[Group]:
    """The rows of each context level and condition under a heading (markup), most context first; numbers of two groups never compare.

    `richest`: of each condition only the level of most context.
    """
    if not len(frame):
        return
    several = len(set(frame["condition"])) > 1
    keys = {(str(level), str(condition)) for level, condition in zip(frame["context_level"], frame["condition"], strict=True)}
    done: set[str] = set()
    for level, condition in sorted(keys, key=lambda key: (-ContextLevel(key[0]).order, key[1])):
        if richest and condition in done:
            continue
        done.add(condition)
        asked = f", asked as <code>{escape(condition)}</code>" if several else ""
        own = frame[(frame["context_level"] == level) & (frame["condition"] == condition)]
        yield Group(escape(ContextLevel(level).heading) + asked, own)


def asked_like(rows: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `frame` that were asked as the first of `rows` was; an empty frame may lack the columns that tell."""
    if not len(frame):
        return frame
    level, condition = rows["context_level"].iloc[0], rows["condition"].iloc[0]
    own: pd.DataFrame = frame[(frame["context_level"] == level) & (frame["condition"] == condition)]
    return own
