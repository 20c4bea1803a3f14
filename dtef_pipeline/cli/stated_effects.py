"""What boards on the terminal say of the n of their rounds: stated design effects, and pairs without n."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.report.column_lines import in_width
from dtef_pipeline.survey.design_effects import about_n
from resources.warehouse import Warehouse

_OF_CEILINGS = {"ceiling", "skill", "deviation", "segment_sd_expected"}
"""Columns of views whose numbers rest on ceilings."""


def lines_of_design_effects(warehouse: Warehouse, frame: pd.DataFrame, rounds: Sequence[str]) -> str:
    """Lines on the design effects and unknown n of `rounds` (none: of all); empty without any, and of a view whose numbers none bears on."""
    if not _OF_CEILINGS & {*frame.columns}:
        return ""
    lines = warehouse.query(lambda connection: about_n(connection, rounds), only=["survey_findings"], first=rounds)
    return "\n".join(in_width(line, terminal_fit().width) for line in lines)
