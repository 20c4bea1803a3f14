"""The views of `dtef leaderboard` as tables for people, and what their columns mean."""

import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.boards import BY_METRIC
from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.cli.why_missing import Reasons, why_no_interval, why_no_tier, why_unranked
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.report.column_lines import column_lines, in_width
from dtef_pipeline.report.drift_terminal import drift_text, verdict_table
from dtef_pipeline.report.fitting import Fit
from dtef_pipeline.report.terminal import columns_that_fit, intervals, named_apart, render, with_ranks
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.meanings import DRIFT, ENDS, FIRST_OUT, TOLD_APART, meanings, view_columns
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.tables import METRICS

EVERY_VIEW = (*MODEL, "condition")
"""Columns without which no view can be shown."""
_WHOSE_VERDICT = ("verdict", *KEYS.space, "model", *KEYS.asked, "shift")
_DRIFT_FIRST_OUT = ("odds needed", "since", "snapshots", "lowest_snapshot", "highest_snapshot", "lowest", "highest")


def render_view(by: str, frame: pd.DataFrame, how: str = "") -> str:
    """A view as a table for people: each model under a name of its own, intervals in one column, without columns that show nothing.

    As wide as the terminal; `how` says how to see what there is no room for. Raises ConfigError when the view lacks a column that every view
    has.
    """
    shown = _shown(by, frame)
    return render(shown, "table", columns=_columns(by, shown), ends=ENDS, fit=_fit(shown, how))


def lines_of_view(by: str, *frames: pd.DataFrame) -> str:
    """A line for each column that a table of the view has and that is not plain English; a tier or interval that is missing says why.

    Begins with an empty line, as it follows the table. Raises ConfigError as `render_view` does.
    """
    told, tables = dict(meanings(by)), [_shown(by, frame) for frame in frames]
    columns = {name: None for shown in tables for name in _columns(by, shown)}
    fitting = {name for shown in tables for name in columns_that_fit(shown, _columns(by, shown), ENDS, _fit(shown))}
    if missing := why_no_tier(frames):
        told["tier"] += f"; {missing}"
    if "rank" in told and "adjusted_score" not in columns:  # it is the same number as the score
        told["rank"] = told["rank"].replace("by adjusted score", "by score")
    reason = why_no_interval(said for shown in tables for said in shown["interval"])
    if reason and "interval" not in columns and "score" in told:
        told["score"] += f"; no interval: {reason}"
    return column_lines([name for name in columns if name in fitting], told, terminal_fit().width)


def lines_of_unranked(frame: pd.DataFrame, without_score: Reasons) -> str:
    """Why models of an overall board have no rank, a line for each; empty where all have one."""
    width = terminal_fit().width
    lines = [in_width(f"  {line}", width, 4) for line in why_unranked(frame, without_score)]
    return "\n".join(["without a rank:", *lines]) if lines else ""


def render_drift(checks: pa.Table) -> str:
    """What `dtef drift` prints, with a line for each column of its table of verdicts that is not plain English."""
    verdicts = verdict_table(checks, NAMES)
    fit = terminal_fit([name for name in _WHOSE_VERDICT if name in verdicts], _DRIFT_FIRST_OUT)
    text = drift_text(checks, NAMES, fit)
    shown = columns_that_fit(verdicts, (), None, fit)
    return "\n".join([text, column_lines(shown, DRIFT, fit.width)] if shown else [text])


def _fit(shown: pd.DataFrame, how: str = "") -> Fit:
    """Columns that hold one value throughout tell no rows apart, and are the first to give way."""
    same = [name for name in TOLD_APART if name in shown and len(set(shown[name])) == 1 < len(shown)]
    return terminal_fit([name for name in TOLD_APART if name not in same], [*same, *FIRST_OUT], how)


def _shown(by: str, frame: pd.DataFrame) -> pd.DataFrame:
    if missing := [name for name in EVERY_VIEW if name not in frame]:
        raise ConfigError(f"--by {by}: its rows lack {', '.join(missing)}; every view has {', '.join(EVERY_VIEW)}")
    shown = named_apart(with_ranks(frame, METRICS) if by == BY_METRIC else frame).assign(interval=intervals(frame))
    if "question" in shown:  # once for neighbouring rows: it takes several lines
        shown["question"] = shown["question"].where(shown["question_id"] != shown["question_id"].shift(), "")
    return shown


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
    if name == "interval" and why_no_interval(shown["interval"]):
        return any(shown[end].notna().any() for end in ("low", "score_low") if end in shown)
    if name in ("interval", "note", "consistency_note"):
        return bool(shown[name].fillna("").ne("").any())
    return True
