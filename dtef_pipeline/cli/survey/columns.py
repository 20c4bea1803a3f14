"""What the columns of each command's table mean, for its help and the reference. Loaded when help is asked for, not before."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.asking.call_plan import PLANNED
from dtef_pipeline.cli.costs import describe_cost_columns
from dtef_pipeline.report.terminal import format_meaning, heading
from dtef_pipeline.survey.boards.meanings import DRIFT_HEADINGS, EXPERIMENT, list_meanings
from dtef_pipeline.survey.boards.survey_views import GROUPED, PUBLISHED

Section = tuple[str, Mapping[str, str]]
"""A heading and columns, by the name that they have in the table, with their meanings."""
_OF_TABLE = {"costs": describe_cost_columns(), "drift": DRIFT_HEADINGS, "run": PLANNED}


def explain_columns(table: str) -> list[Section]:
    """The sections on a table that a command shows; columns that mean the same in a later view stand once."""
    if table != "leaderboard":
        columns = _OF_TABLE.get(table, {})
        return [("Columns with --estimate" if table == "run" else "Columns", _format_headings(columns))] if columns else []
    common = list_meanings(GROUPED[0])
    sections: list[Section] = [(f"Columns with --by {', '.join(GROUPED)}", _format_headings(common))]
    for view in PUBLISHED:
        if own := {name: text for name, text in list_meanings(view.name).items() if common.get(name) != text}:
            sections.append((f"Columns with --by {view.name}, beside these", _format_headings(own)))
    return [*sections, ("Columns with --experiment", _format_headings(EXPERIMENT))]


def _format_headings(columns: Mapping[str, str]) -> dict[str, str]:
    return {heading(name): format_meaning(text) for name, text in columns.items()}
