"""Rows of one context level and condition, which are never mixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from dtef_pipeline.survey.blueprint.options import ContextLevel


class Setting(NamedTuple):
    """A context level under a condition."""

    level: str
    condition: str

    def select_rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this context level and condition. An empty frame may lack these columns."""
        if not len(frame):
            return frame
        rows: pd.DataFrame = frame[(frame["context_level"] == self.level) & (frame["condition"] == self.condition)]
        return rows


def group_by_setting(frame: pd.DataFrame) -> Iterator[tuple[Setting, pd.DataFrame]]:
    """Yield the rows of each context level and condition, most context first. Numbers of different groups cannot be compared."""
    if not len(frame):
        return
    settings = {Setting(*pair) for pair in frame[["context_level", "condition"]].astype(str).itertuples(index=False)}
    for setting in sorted(settings, key=lambda item: (-ContextLevel(item.level).order, item.condition)):
        yield setting, setting.select_rows(frame)
