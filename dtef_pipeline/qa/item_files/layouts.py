"""The layouts that are known, by name."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.gsm8k import load_gsm8k
from dtef_pipeline.qa.item_files.humaneval import load_humaneval
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.item_files.mmlu import load_mmlu
from dtef_pipeline.qa.item_files.socioscope import CheckMetric, TurnText, load_socioscope

TABLE_LAYOUTS = {"mmlu": load_mmlu, "gsm8k": load_gsm8k, "humaneval": load_humaneval}
"""Those of one row per item, each with what reads it."""
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
    """The items at a path, which is a file or a folder in one of ITEM_LAYOUTS.

    Args:
        layout: one of ITEM_LAYOUTS.
        path: a file, or a folder where the layout has folders.
        suite: what the items belong to.
        part: of Socioscope's layout, as `load_socioscope` takes it; in other layouts the files say it.
        strict: whether the first row that is not usable raises ItemError.
        check_metric: of Socioscope's layout, as `load_socioscope` takes it; other layouts have no metrics.
        turn_text: the same.

    Raises:
        ItemError: for a path where nothing is.
        ConfigError: for another layout.
    """
    if layout == INTERVIEW_LAYOUT:
        return load_socioscope(path, suite=suite, part=part, strict=strict, check_metric=check_metric, turn_text=turn_text)
    if layout not in TABLE_LAYOUTS:
        raise ConfigError(f"layout {layout!r}: allowed: {', '.join(ITEM_LAYOUTS)}")
    return TABLE_LAYOUTS[layout](path, suite=suite, strict=strict)
