"""What boards on the terminal say of the design effects that were stated when their rounds were ingested."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.report.column_lines import in_width
from dtef_pipeline.survey.design_effects import design_effects, in_words
from resources.table_reader import TableReader

_OF_CEILINGS = {"ceiling", "skill", "expected_gap", "segment_sd_expected"}
"""Columns of views whose numbers rest on ceilings."""


def lines_of_design_effects(reader: TableReader, frame: pd.DataFrame, rounds: Sequence[str]) -> str:
    """One line on the design effects of `rounds` (none: of all); empty without any, and of a view whose numbers none bears on."""
    if not _OF_CEILINGS & {*frame.columns}:
        return ""
    effects = reader.query(lambda connection: design_effects(connection, rounds), only=["survey_findings"], first=rounds)
    return in_width(in_words(effects), terminal_fit().width)
