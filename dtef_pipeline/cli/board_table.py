"""The views of `dtef leaderboard` as tables for people."""

import pandas as pd

from dtef_pipeline.boards.boards import BY_METRIC
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.report.terminal import intervals, named_apart, render, with_ranks
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.published import BY_NAME, GROUPED
from dtef_pipeline.survey.tables import METRICS

EVERY_VIEW = (*MODEL, "condition")
"""Columns without which no view can be shown."""
COMMON_COLUMNS = [
    *("rank", "tier", "model", "context_level", "score", "interval", "parsed_score", "adjusted_score"),
    *("skill", "worth", "vs_marginal", "n_pairs", "coverage", "parse_rate"),
]


def render_view(by: str, frame: pd.DataFrame) -> str:
    """A view as a table for people: each model under a name of its own, intervals in one column, without columns that show nothing.

    Raises ConfigError when the view lacks a column that every view has.
    """
    if missing := [name for name in EVERY_VIEW if name not in frame]:
        raise ConfigError(f"--by {by}: its rows lack {', '.join(missing)}; every view has {', '.join(EVERY_VIEW)}")
    shown = named_apart(with_ranks(frame, METRICS) if by == BY_METRIC else frame).assign(interval=intervals(frame))
    columns = [name for name in view_columns(by, frame) if name in shown]
    return render(shown, "table", columns=[name for name in columns if _says_something(name, shown)])


def _says_something(name: str, shown: pd.DataFrame) -> bool:
    if name in ("parsed_score", "adjusted_score"):  # beside the score, only where it is another number
        return bool((shown[name] - shown["score"]).abs().gt(5e-5).any())
    if name in ("interval", "note", "consistency_note"):
        return bool(shown[name].fillna("").ne("").any())
    return True


def view_columns(by: str, frame: pd.DataFrame) -> list[str]:
    """Columns of a view as a table; with `condition` when it is not the usual one throughout."""
    columns = [*BY_NAME[by].columns, *(COMMON_COLUMNS if by in GROUPED else METRICS if by == BY_METRIC else ())]
    if set(frame["condition"]) <= {BlueprintOptions().condition}:
        return columns
    after = columns.index("context_level" if "context_level" in columns else "model") + 1
    return [*columns[:after], "condition", *columns[after:]]
