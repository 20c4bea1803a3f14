"""What is missing behind rows of a board, in words: why they have no rank, no tier or no interval, and which rest on few pairs."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.survey.boards.scored import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.boards.views import is_partly
from dtef_pipeline.text.counted import and_more, counted

Row = Mapping[Hashable, Any]
Reasons = Mapping[tuple[str, str, str], str]
"""By model variant, context level and condition."""
_MOST_PLACES = 3


def reasons_without_score(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> Reasons:
    """The most frequent reason why what a model responded has no score, of a connection with `scores`."""
    rows = connection.execute(
        "SELECT model_variant, context_level, condition, mode(reason) FROM scores "
        "WHERE reason <> '' AND (len($1) = 0 OR list_contains($1, round)) AND ($2 IS NULL OR snapshot = $2) GROUP BY ALL",
        [list(options.rounds), options.snapshot or None],
    ).fetchall()
    return {(variant, level, condition): reason for variant, level, condition, reason in rows}


def why_unranked(frame: pd.DataFrame, without_score: Reasons) -> list[str]:
    """A line for each reason why a model of an overall board has no rank."""
    named, lines = named_apart(frame), []
    for model, rows in named.groupby("model", sort=False, observed=True):
        reasons: dict[str, list[str]] = {}
        for row in rows[rows["rank"].isna()].to_dict("records"):
            reasons.setdefault(_why_unranked(frame, row, without_score), []).append(_place(row))
        for reason, places in reasons.items():
            where = "" if len(places) == len(rows) else f" at {_places(places)}"
            lines.append(f"{model}{where}: {reason}")
    return lines


def covers_few(frame: pd.DataFrame) -> list[str]:
    """A line for each model of an overall board that is ranked by less than half of the board's pairs, with how many it has a score for."""
    named = named_apart(frame)
    few = named[np.array([is_partly(*row) for row in zip(named["coverage"], named["rank"], strict=True)], dtype=bool)]
    lines = []
    for model, rows in few.groupby("model", sort=False, observed=True):
        alone = frame["context_level"].nunique() == frame["condition"].nunique() == 1
        places = [f"{row['coverage']:.0%}" + ("" if alone else f" at {_place(row)}") for row in rows.to_dict("records")]
        lines.append(f"{model}: {_places(places)}")
    return lines


def why_no_tier(frames: Sequence[pd.DataFrame]) -> str:
    """Where ranked models of overall boards have no tier, and why; empty where all have one."""
    reasons: dict[str, dict[str, None]] = {}
    for frame in (frame for frame in frames if "tier_note" in frame):
        tiered = {_place(row) for row in frame.to_dict("records") if pd.notna(row["tier"])}
        for row in frame.to_dict("records"):
            if row["tier_note"]:
                # Where others have a tier, the model that has none is named.
                place = f"of {row['model']} at {_place(row)}" if _place(row) in tiered else f"at {_place(row)}"
                reasons.setdefault(row["tier_note"], {})[place] = None
    if len(reasons) == 1 and not any(frame["tier"].notna().any() for frame in frames):
        return f"here none: {next(iter(reasons))}"
    return "; ".join(f"none {_places(list(places))}: {reason}" for reason, places in reasons.items())


def why_no_interval(said: Iterable[str]) -> str:
    """The reason that all intervals give in place of numbers; empty where they differ."""
    reasons = {words for words in said if words}
    return reasons.pop() if len(reasons) == 1 and next(iter(reasons)).endswith("needed") else ""


def _why_unranked(frame: pd.DataFrame, row: Row, without_score: Reasons) -> str:
    if not row["n_pairs"]:
        way = (str(row["model_variant"]), str(row["context_level"]), str(row["condition"]))
        return f"no score: {without_score.get(way, 'nothing that counts here was asked')}"
    alike = (frame["context_level"] == row["context_level"]) & (frame["condition"] == row["condition"])
    needed = min(SCORED.ranked_from, int(frame.loc[alike, "n_segments"].max()))
    return f"scores in {counted(row['n_segments'], 'segment')} only, and {needed} are needed"


def _place(row: Row) -> str:
    return f"context {row['context_level']}, {row['condition']}"


def _places(places: Sequence[str]) -> str:
    return and_more(places, _MOST_PLACES, "; ")


def line_of_non_answers(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> str:
    """How many segments of people who gave no answer a board leaves out; empty where it leaves out none."""
    if options.of_answers is None:
        return ""
    left_out = [
        f"{round_id}/{segment}"
        for round_id, segment in connection.execute(
            f"SELECT DISTINCT round, segment FROM scores WHERE NOT ({options.of_answers}) "
            "AND (len($1) = 0 OR list_contains($1, round)) ORDER BY ALL",
            [list(options.rounds)],
        ).fetchall()
    ]
    if not left_out:
        return ""
    many, named = counted(len(left_out), "segment"), and_more(left_out, _MOST_PLACES)
    return f"left out: {many} of people who gave no answer ({named}); `dtef leaderboard --non-answers` keeps them"
