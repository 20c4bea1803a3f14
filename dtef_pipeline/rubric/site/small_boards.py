"""Leaderboards within a tag or a blueprint: a table with its chart, and who is best in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Chart, Column, Estimate, Link, Table, TemplateBlock, is_unknown
from dtef_pipeline.site.number_text import show, show_interval
from dtef_pipeline.text.counted import counted

MOST_IN_CHART = 40
_PARTS_COLUMN = Column("n_parts", "", "count", more=True)
_SMALL_BOARD_COLUMNS = (
    Column("model", "Model"),
    Column("rank", "Rank", "count"),
    Column("score", "Score", "score", "Mean hybrid score, 0-1, higher is better"),
    Column("coverage", "Coverage", "number", "Weighted share of the criteria that are met, 0-1"),
    Column("similarity", "Similarity", "number", "Cosine similarity to the ideal answer, -1 to 1"),
    Column("ranks", "Rank range", more=True, meaning="The best and the worst rank that the comparisons leave"),
    Column("note", "Note", "note"),
)


def ranked_row(row: Mapping[Any, Any], model: Link | str) -> dict[str, Any]:
    """A row of the board with its model linked, its score as an estimate, and its rank range in words."""
    low, high = row.get("rank_low"), row.get("rank_high")
    ranks = None if is_unknown(low) or is_unknown(high) else f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
    return {
        **row,
        "model": model,
        "rank": None if pd.isna(row["rank"]) else int(row["rank"]),
        "score": Estimate(row["score"], row["low"], row["high"]),
        "ranks": ranks,
    }


def board_block(caption: str, rows: Sequence[Mapping[str, Any]], parts: str) -> TemplateBlock:
    """Table and chart of rows as of `ranked_row`; `parts`: what a score is the mean over, as a heading."""
    columns = [*_SMALL_BOARD_COLUMNS[:-1], replace(_PARTS_COLUMN, title=parts), _SMALL_BOARD_COLUMNS[-1]]
    shown = [row for row in rows if not is_unknown(row["score"])][:MOST_IN_CHART]
    chart = Chart("intervals", [_dot(row) for row in shown], caption)
    return TemplateBlock("leaderboard.html.j2", {"table": Table(caption, columns, rows), "chart": chart})


def _dot(row: Mapping[str, Any]) -> dict[str, Any]:
    value, low, high = row["score"]
    model = row["model"]
    link = {"href": model.href} if isinstance(model, Link) else {}
    return {"label": model_name(row), "value": value, "low": low, "high": high, **link}


def model_name(row: Mapping[str, Any]) -> str:
    """The name of the model of a row as of `ranked_row`."""
    model = row["model"]
    return model.text if isinstance(model, Link) else str(model)


def best_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """`amber scores best of 24 models: 0.81 (0.78 to 0.84), on average 0.62.` of rows as of `ranked_row`, the best first."""
    known = [row for row in rows if not is_unknown(row["score"])]
    if not known:
        return "No model has a score yet."
    best, interval = known[0]["score"], show_interval(known[0]["score"], "score")
    numbers = f"{show(best, 'score')} ({interval})" if interval else show(best, "score")
    mean = sum(row["score"].value for row in known) / len(known)
    if len(known) == 1:
        return f"{model_name(known[0])}, the only model, scores {numbers}."
    return (
        f"{model_name(known[0])} scores best of {counted(len(known), 'model')}: {numbers}; their mean is {show(mean, 'score')}."
    )
