"""The known layouts of item files, by name."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.gsm8k import load_gsm8k
from dtef_pipeline.qa.item_files.humaneval import load_humaneval
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.item_files.mmlu import load_mmlu
from dtef_pipeline.qa.item_files.socioscope import CheckMetric, TurnText, load_socioscope

TABLE_LAYOUTS = {"mmlu": load_mmlu, "gsm8k": load_gsm8k, "humaneval": load_humaneval}
"""Layouts with one row per item, each with its reader."""
INTERVIEW_LAYOUT = "socioscope"
ITEM_LAYOUTS = (*TABLE_LAYOUTS, INTERVIEW_LAYOUT)


def load_items(
    layout: str,
    path: Path,
    suite: str,
    *,
    part: str | None = None,
    strict: bool = False,
    check_metric: CheckMetric | None = None,
    turn_text: TurnText | None = None,
) -> LoadedItems:
    """Load the items at a path, a file or a folder in one of ITEM_LAYOUTS.

    Args:
        layout: one of ITEM_LAYOUTS.
        path: a file, or a folder if the layout supports folders.
        suite: the suite of the items.
        part: for Socioscope's layout, see `load_socioscope`; in other layouts the files name the parts.
        strict: whether the first unusable row raises ItemError.
        check_metric: for Socioscope's layout, see `load_socioscope`; other layouts have no metrics.
        turn_text: the same.

    Raises:
        ItemError: for a path that does not exist.
        ConfigError: for an unknown layout.
    """
    if layout == INTERVIEW_LAYOUT:
        return load_socioscope(path, suite=suite, part=part, strict=strict, check_metric=check_metric, turn_text=turn_text)
    if layout not in TABLE_LAYOUTS:
        raise ConfigError(f"layout {layout!r}: allowed: {', '.join(ITEM_LAYOUTS)}")
    return TABLE_LAYOUTS[layout](path, suite=suite, strict=strict)
