"""The views of `dtef leaderboard` as tables for people, and what their columns mean."""

import pandas as pd

from dtef_pipeline.boards.boards import BY_METRIC
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.report.column_lines import column_lines, heading
from dtef_pipeline.report.terminal import intervals, named_apart, render, with_ranks
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.meanings import DRIFT, ENDS, meanings, view_columns
from dtef_pipeline.survey.tables import METRICS

EVERY_VIEW = (*MODEL, "condition")
"""Columns without which no view can be shown."""


def render_view(by: str, frame: pd.DataFrame) -> str:
    """A view as a table for people: each model under a name of its own, intervals in one column, without columns that show nothing.

    Raises ConfigError when the view lacks a column that every view has.
    """
    shown = _shown(by, frame)
    return render(shown, "table", columns=_columns(by, shown), ends=ENDS)


def lines_of_view(by: str, *frames: pd.DataFrame) -> str:
    """A line for each column that a table of the view has and that is not plain English; a tier that is missing says why.

    Begins with an empty line, as it follows the table. Raises ConfigError as `render_view` does.
    """
    told = dict(meanings(by))
    if reasons := list(dict.fromkeys(words for frame in frames for words in frame.get("tier_note", ()) if words)):
        told["tier"] += f"; here none: {reasons[0]}{' (elsewhere likewise)' if len(reasons) > 1 else ''}"
    return column_lines(list(dict.fromkeys(name for frame in frames for name in _columns(by, _shown(by, frame)))), told)


def lines_of_drift(text: str) -> str:
    """The same for the table of verdicts in what `dtef drift` prints; nothing where there is none."""
    header = next((line for line in text.splitlines() if line.strip().startswith("verdict ")), "")
    return column_lines([name for name in DRIFT if heading(name) in header], DRIFT) if header else ""


def _shown(by: str, frame: pd.DataFrame) -> pd.DataFrame:
    if missing := [name for name in EVERY_VIEW if name not in frame]:
        raise ConfigError(f"--by {by}: its rows lack {', '.join(missing)}; every view has {', '.join(EVERY_VIEW)}")
    return named_apart(with_ranks(frame, METRICS) if by == BY_METRIC else frame).assign(interval=intervals(frame))


def _columns(by: str, shown: pd.DataFrame) -> list[str]:
    """Columns of a view as a table; with `condition` when it is not the usual one throughout."""
    columns = [name for name in view_columns(by) if name in shown and _says_something(name, shown)]
    if set(shown["condition"]) <= {BlueprintOptions().condition}:
        return columns
    after = columns.index("context_level" if "context_level" in columns else "model") + 1
    return [*columns[:after], "condition", *columns[after:]]


def _says_something(name: str, shown: pd.DataFrame) -> bool:
    if name in ("parsed_score", "adjusted_score"):  # beside the score, only where it is another number
        return bool((shown[name] - shown["score"]).abs().gt(5e-5).any())
    if name in ("interval", "note", "consistency_note"):
        return bool(shown[name].fillna("").ne("").any())
    return True
