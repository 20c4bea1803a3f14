"""What is missing behind rows of a board, in words: why they have no rank or no interval."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.boards.boards import NO_RANK
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
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
            reasons.setdefault(_why_unranked(row, without_score), []).append(_place(row))
        for reason, places in reasons.items():
            where = "" if len(places) == len(rows) else f" at {_places(places)}"
            lines.append(f"{model}{where}: {reason}")
    return lines


def why_no_interval(said: Iterable[str]) -> str:
    """The reason that all intervals give in place of numbers; empty where they differ."""
    reasons = {words for words in said if words}
    return reasons.pop() if len(reasons) == 1 and next(iter(reasons)).endswith("needed") else ""


def _why_unranked(row: Row, without_score: Reasons) -> str:
    if not row["n_pairs"]:
        way = (str(row["model_variant"]), str(row["context_level"]), str(row["condition"]))
        return f"no score: {without_score.get(way, 'nothing that counts here was asked')}"
    return next(note for note in str(row["note"]).split("; ") if note.startswith(NO_RANK)).removeprefix(f"{NO_RANK}: ")


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
