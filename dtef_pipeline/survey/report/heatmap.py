"""Segments against models: a table whose cells are coloured by the mean score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import fold, is_unknown, paragraph, scrolling, section, shortened, text, three, whole
from dtef_pipeline.report.palette import STEPS, colour, steps
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_HEATMAP = (
    "Mean score of each model in each segment, at the highest context level: yellow is high, dark blue is low. Models stand in the order of the "
    "leaderboard. n beneath a segment is the number of its respondents: small segments are noisier. Point at a cell, or tap it, for the "
    "interval and the number of pairs, and see the gaps below before calling a difference real."
)


_TOLD = '<p class="count" role="status">No cell chosen.</p>'
_LONGEST = 34
"""Characters of a model's name above its column."""
_SEGMENT_DATA = (
    "segment",
    "n_respondents",
    "n_rounds",
    "model",
    "model_variant",
    "context_level",
    "condition",
    "score",
    "score_low",
    "score_high",
    "n_pairs",
)


def respondents(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Each scored segment with `n_respondents`, over the `n_rounds` rounds it was scored in; empty without the table of answers."""
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame({"segment": [], "n_respondents": [], "n_rounds": []})
    return connection.execute(
        "SELECT segment, sum(n)::BIGINT AS n_respondents, count(*) AS n_rounds FROM ("
        "SELECT round, segment, max(segment_n) AS n FROM survey_responses SEMI JOIN scores USING (round, segment) GROUP BY ALL"
        ") GROUP BY ALL ORDER BY ALL"
    ).df()


def heat_map_section(frame: pd.DataFrame, overall: pd.DataFrame | None = None, sizes: pd.DataFrame | None = None) -> str:
    """The section, from rows of the board by segment, models in the order of the overall board (without one, of their means).

    `sizes`: as of `respondents`.
    """
    if sizes is not None and len(frame):
        frame = frame.merge(sizes, on="segment", how="left")
    groups = [
        fold(title, _heat_table(rows, overall), is_open=at == 0)
        for at, (title, rows) in enumerate(asked_alike(frame, richest=True))
    ]
    return section("segments", "Segments", _HOW_TO_READ_HEATMAP, "".join(groups) or paragraph("No scores yet."))


def _ordered(rows: pd.DataFrame, overall: pd.DataFrame | None) -> list[str]:
    """The models of the rows: ranked ones in the order of their rank, then the others by their mean."""
    means = rows.groupby("model", observed=True)["score"].mean()
    models = [str(model) for model in means.index[np.argsort(ranks(means), kind="stable")]]
    if overall is None or not len(overall):
        return models
    alike = asked_like(rows, overall)
    alike = alike[alike["rank"].notna()]
    known = dict(zip(alike["model"].astype(str), alike["rank"].astype(float), strict=True))
    return sorted(models, key=lambda model: known.get(model, float("inf")))


def _heat_table(rows: pd.DataFrame, overall: pd.DataFrame | None) -> str:
    rows = rows[rows["score"].notna()]
    if not len(rows):
        return paragraph("No scores yet.")
    models = _ordered(rows, overall)
    edges = steps(rows["score"])
    cells = {(row["segment"], row["model"]): _cell(row, edges) for row in rows.to_dict("records")}
    head = "".join(_model_head(model) for model in models)
    parts = [_attribute(str(name), own, cells, models) for name, own in rows.groupby("attribute", sort=True, observed=True)]
    caption = "Mean score by segment and model, grouped by attribute"
    shown = (
        f'<table class="heat"><caption>{caption}</caption><thead><tr><th scope="col" class="text">Segment</th>{head}</tr></thead>'
        f"{''.join(parts)}</table>"
    )
    data = rows[[name for name in _SEGMENT_DATA if name in rows]]
    return f"{_legend(edges, rows['score'])}{_TOLD}{scrolling(shown, caption, data)}"


def _model_head(model: str) -> str:
    """A heading on end: what two long names differ in is at their ends, so the middle is cut; whole when pointed at and when read aloud."""
    whole = text(model)
    return f'<th scope="col" class="upright" title="{whole}" aria-label="{whole}"><span>{text(shortened(model, _LONGEST))}</span></th>'


def _attribute(name: str, rows: pd.DataFrame, cells: dict[tuple[str, str], str], models: Sequence[str]) -> str:
    titles = {row["segment"]: _titled(row) for row in rows.sort_values("segment").to_dict("records")}
    head = f'<tr><th scope="rowgroup" colspan="{len(models) + 1}" class="text group">{escape(name)}</th></tr>'
    body = "".join(
        f'<tr><th scope="row" class="text">{title}</th>{"".join(cells.get((segment, model), "<td></td>") for model in models)}</tr>'
        for segment, title in titles.items()
    )
    return f"<tbody>{head}{body}</tbody>"


def _titled(row: Mapping[Any, Any]) -> str:
    """Markup of a segment and the number of its respondents, where that is known."""
    n, rounds = row.get("n_respondents"), row.get("n_rounds")
    if is_unknown(n):
        return text(row["value"])
    of_rounds = f" in {counted(int(rounds or 0), 'round')}" if rounds != 1 else ""
    return f'{text(row["value"])}<span class="n">n = {whole(n)}{of_rounds}</span>'


def _cell(row: dict[Any, Any], edges: Sequence[float]) -> str:
    low, high = row.get("score_low"), row.get("score_high")
    interval = f", 95 % {low:.3f} to {high:.3f}" if pd.notna(low) and pd.notna(high) else ""
    title = f"{row['model']}: {row['score']:.4f}{interval}, {counted(int(row['n_pairs']), 'pair')}"
    return f'<td class="h{colour(row["score"], edges)}" title="{escape(title)}">{row["score"]:.2f}</td>'


def _legend(edges: Sequence[float], scores: pd.Series[Any]) -> str:
    ends = [float(scores.min()), *edges, float(scores.max())]
    steps_shown = "".join(f'<span class="h{at}">{three(low)}</span>' for at, low in enumerate(ends[:-1]))
    return f'<p class="legend">From {steps_shown} up to {three(ends[-1])}</p>'


HEAT_STYLE = "".join(f".h{at}{{background:{ground};color:{ink}}}" for at, (ground, ink) in enumerate(STEPS))
