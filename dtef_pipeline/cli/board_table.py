"""The views of `dtef leaderboard` as tables for people, and what their columns mean."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.boards import BY_METRIC
from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.cli.why_missing import Reasons, why_no_interval, why_unranked
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.report.column_lines import column_lines, in_width
from dtef_pipeline.report.drift_terminal import drift_text, verdict_table
from dtef_pipeline.report.fitting import Fit, shown_columns
from dtef_pipeline.report.names import Names
from dtef_pipeline.report.terminal import (
    intervals,
    intervals_of,
    named_apart,
    render,
    render_blocks,
    with_ranks,
)
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.meanings import (
    DRIFT,
    ENDS,
    FIRST_OUT,
    OWN_INTERVALS,
    SHOWN_INTERVALS,
    meanings,
    subject_columns,
    view_columns,
)
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.counted import and_more, counted

EVERY_VIEW = (*MODEL, "condition")
"""Columns without which no view can be shown."""
_TITLES = {
    "round": "round",
    "segment": "segment",
    "attribute": "attribute",
    "levels": "context levels",
    "context_level": "context",
    "condition": "asked as",
    "family": "",
}
"""Columns that can stand above the rows instead, with the words that their values follow."""
_NOTES = ("note", "consistency_note")
_MOST_NOTES = 5
"""Rows of which it is told that readable responses alone say something else, and that have one note."""
_DRIFT_FIRST_OUT = ("odds needed", "since", "snapshots", "lowest_snapshot", "highest_snapshot", "lowest", "highest")


class _Laid(NamedTuple):
    """A view as it is shown."""

    shown: pd.DataFrame
    columns: list[str]
    above: list[str]
    """Columns whose values stand above their rows."""
    titles: list[str]
    """By row, what stands above it."""


def render_view(by: str, frame: pd.DataFrame, how: str = "", said: Collection[str] = ()) -> str:
    """A view as a table for people: each model under a name of its own, intervals in one column, without columns that show nothing.

    As wide as the terminal, with a table for each way of asking beneath a line that names it; `how` says how to see what there is no room
    for, `said` names columns whose one value was said before. Raises ConfigError when the view lacks a column that every view has.
    """
    fit = _fit(by, how)
    laid = _laid_out(by, frame, fit, said)
    if not laid.above:
        return render(laid.shown, "table", columns=laid.columns, ends=ENDS, fit=fit)
    return render_blocks(laid.shown, laid.titles, laid.columns, ENDS, fit)


def lines_of_view(by: str, *frames: pd.DataFrame) -> str:
    """A line for each column that a table of the view has and that is not plain English; an interval that is missing says why.

    Before them stands what readable responses alone say otherwise. Begins with an empty line, or with that, as it follows the table. Raises
    ConfigError as `render_view` does.
    """
    fit = _fit(by)
    told, tables = dict(meanings(by)), [_laid_out(by, frame, fit) for frame in frames]
    columns = {name: None for laid in tables for name in (*laid.above, *laid.columns)}
    fitting = {name for laid in tables for name in (*laid.above, *shown_columns(laid.columns, fit))}
    if "rank" in told and "adjusted_score" not in columns:  # it is the same number as the score
        told["rank"] = told["rank"].replace("by adjusted score", "by score")
    reason = why_no_interval(said for laid in tables for said in laid.shown["interval"])
    if reason and "interval" not in columns and "score" in told:
        told["score"] += f"; no interval from {reason}"
    lines = column_lines([name for name in columns if name in fitting], told, fit.width)
    notes = [_notes(laid.shown, name) for laid in tables for name in _NOTES if name in laid.columns and name not in fitting]
    return "\n".join(filter(None, [*notes, *map(_readable_alone, frames), lines]))


def lines_of_unranked(frame: pd.DataFrame, without_score: Reasons) -> str:
    """Why models of an overall board have no rank, a line for each; empty where all have one."""
    return _listed("without a rank:", why_unranked(frame, without_score))


def _readable_alone(frame: pd.DataFrame) -> str:
    """Where readable responses alone say something else than the published policy, a line for each of the first; empty where nowhere."""
    if "parsed_note" not in frame:
        return ""
    told = named_apart(frame[frame["parsed_note"].fillna("") != ""])
    lines = [f"{who}: {words}" for who, words in zip(_who(told), told["parsed_note"], strict=True)]
    left = len(lines) - _MOST_NOTES
    more = [f"{counted(left, 'more row')}: --format csv has them all, as parsed_note"] if left > 0 else []
    return _listed("by readable responses alone:", [*lines[:_MOST_NOTES], *more])


def _notes(shown: pd.DataFrame, column: str) -> str:
    """What is to be known of rows, where the table has no room for it: each note once, with the rows that it is about."""
    noted = shown[shown[column].fillna("") != ""]
    of_note: dict[str, dict[str, None]] = {}
    for who, note in zip(_who(noted), noted[column], strict=True):
        of_note.setdefault(note, {})[who] = None
    of_all = len(of_note) == 1 and len(noted) == len(shown)
    lines = [f"{'all rows' if of_all else and_more(list(who), _MOST_NOTES, '; ')}: {note}" for note, who in of_note.items()]
    return _listed("notes:", lines)


def _who(frame: pd.DataFrame) -> Iterator[str]:
    others = frame["other_model"] if "other_model" in frame else [None] * len(frame)
    attributes = frame["attribute"] if "attribute" in frame else [None] * len(frame)
    for model, other, attribute in zip(frame["model"], others, attributes, strict=True):
        yield f"{model} against {other}" if other else f"{model}, {attribute}" if attribute else model


def _listed(title: str, lines: Sequence[str]) -> str:
    width = terminal_fit().width
    return "\n".join([in_width(title, width), *(in_width(f"  {line}", width, 4) for line in lines)]) if lines else ""


def render_drift(checks: pa.Table, names: Names = NAMES, told: Mapping[str, str] = DRIFT) -> str:
    """What `dtef drift` prints, with a line for each column of its table of verdicts that is not plain English.

    `names`: of the family that the checks are of; `told`: what the columns mean.
    """
    verdicts, keys = verdict_table(checks, names), names.subject.keys
    whose = ("verdict", "night", *keys.space, "model", *keys.asked, "shift")
    fit = terminal_fit([name for name in whose if name in verdicts], _DRIFT_FIRST_OUT)
    text = drift_text(checks, names, fit)
    shown = shown_columns([*map(str, verdicts)], fit)
    return "\n".join([text, column_lines(shown, told, fit.width)] if shown else [text])


def _fit(by: str, how: str = "") -> Fit:
    return terminal_fit(subject_columns(by), FIRST_OUT, how)


def _laid_out(by: str, frame: pd.DataFrame, fit: Fit, said: Collection[str] = ()) -> _Laid:
    """On a terminal, ways of asking and what all rows share stand above the rows: as columns they leave no room for what a view is about."""
    shown = _shown(by, frame)
    columns = _columns(by, shown)
    shared = [name for name in _TITLES if name in columns and len(set(shown[name])) == 1 < len(shown)]
    told_apart = (*KEYS.asked, "family")
    above = [name for name in _TITLES if name in columns and (name in shared or name in told_apart)] if fit.width else []
    titles = ["; ".join(_title(row, above, said)) for row in shown.to_dict("records")]
    shown = shown.assign(title=titles).sort_values("title", key=lambda found: pd.factorize(found)[0], kind="stable")
    if "question" in shown:  # once for neighbouring rows: it takes several lines
        before = shown[["title", "question_id"]].shift()
        shown["question"] = shown["question"].where((shown[["title", "question_id"]] != before).any(axis=1), "")
    return _Laid(shown, [name for name in columns if name not in above], above, list(shown["title"]))


def _title(row: Mapping[Hashable, Any], above: Sequence[str], said: Collection[str]) -> Iterator[str]:
    for name in above:
        if name not in said:
            yield f"{_TITLES[name]} {row[name]}".lstrip()


def _shown(by: str, frame: pd.DataFrame) -> pd.DataFrame:
    if missing := [name for name in EVERY_VIEW if name not in frame]:
        raise ConfigError(f"--by {by}: its rows lack {', '.join(missing)}; every view has {', '.join(EVERY_VIEW)}")
    shown = named_apart(with_ranks(frame, METRICS) if by == BY_METRIC else frame).assign(
        interval=intervals(frame, SHOWN_INTERVALS)
    )
    own = {column: name for column, name in OWN_INTERVALS.items() if ENDS[name][0] in frame}
    shown = shown.assign(**{column: intervals_of(frame, name, ENDS[name]) for column, name in own.items()})
    return shown.assign(questions=_questions(frame)) if {"n_questions", "n_batteries"} <= {*frame} else shown


def _questions(frame: pd.DataFrame) -> list[str]:
    """`43 (13)`: the different questions of each row, and their batteries."""
    both = zip(frame["n_questions"], frame["n_batteries"], strict=True)
    return [f"{questions:,} ({batteries:,})" for questions, batteries in both]


def _columns(by: str, shown: pd.DataFrame) -> list[str]:
    """Columns of a view as a table; with `condition` when it is not the usual one throughout."""
    columns = [name for name in view_columns(by) if name in shown and _says_something(name, shown)]
    if set(shown["condition"]) <= {BlueprintOptions().condition}:
        return columns
    after = columns.index("context_level" if "context_level" in columns else "model") + 1
    return [*columns[:after], "condition", *columns[after:]]


_BESIDE = {"parsed_score": "score", "adjusted_score": "score"}
"""Columns that repeat another one where every response was read and every model asked the same."""


def _says_something(name: str, shown: pd.DataFrame) -> bool:
    if name in _BESIDE:  # only where it is another number
        return bool((shown[name] - shown[_BESIDE[name]]).abs().gt(5e-5).any())
    if name == "parsed_verdict":  # beside the verdict, only where it is another one
        return bool(
            (shown["parsed_note"].fillna("") if "parsed_note" in shown else shown[name].ne(shown["verdict"])).astype(bool).any()
        )
    if name == "interval" and why_no_interval(shown["interval"]):
        return any(shown[low].notna().any() for low, _ in SHOWN_INTERVALS if low in shown)
    if name in ("interval", "note", "consistency_note", *OWN_INTERVALS):
        return bool(shown[name].fillna("").ne("").any())
    return True
