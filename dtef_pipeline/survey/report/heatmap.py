"""Segments against models: a table whose cells are coloured by the mean score."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.report.markup import fold, paragraph, section, shortened, text, three
from dtef_pipeline.report.palette import STEPS, colour, steps
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_HEATMAP = (
    "Mean score of each model in each segment, at the highest context level: yellow is high, dark blue is low. Models stand in the order of the "
    "leaderboard. Small segments are noisier; "
    "point at a cell for the interval and the number of questions, and see the gaps below before calling a difference real."
)


_LONGEST = 34
"""Characters of a model's name above its column."""


def heat_map_section(frame: pd.DataFrame, overall: pd.DataFrame | None = None) -> str:
    """The section, from rows of the board by segment, models in the order of the overall board (without one, of their means)."""
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
    return (
        f'{_legend(edges, rows["score"])}<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="heat">'
        f'<caption>{caption}</caption><thead><tr><th scope="col" class="text">Segment</th>{head}</tr></thead>{"".join(parts)}</table></div>'
    )


def _model_head(model: str) -> str:
    """A heading on end: what two long names differ in is at their ends, so the middle is cut; whole when pointed at and when read aloud."""
    whole = text(model)
    return f'<th scope="col" class="upright" title="{whole}" aria-label="{whole}"><span>{text(shortened(model, _LONGEST))}</span></th>'


def _attribute(name: str, rows: pd.DataFrame, cells: dict[tuple[str, str], str], models: Sequence[str]) -> str:
    titles = dict(sorted(zip(rows["segment"], rows["value"], strict=True)))
    head = f'<tr><th scope="rowgroup" colspan="{len(models) + 1}" class="text group">{escape(name)}</th></tr>'
    body = "".join(
        f'<tr><th scope="row" class="text">{text(value)}</th>{"".join(cells.get((segment, model), "<td></td>") for model in models)}</tr>'
        for segment, value in titles.items()
    )
    return f"<tbody>{head}{body}</tbody>"


def _cell(row: dict[Any, Any], edges: Sequence[float]) -> str:
    low, high = row.get("score_low"), row.get("score_high")
    interval = f", 95 % {low:.3f} to {high:.3f}" if pd.notna(low) and pd.notna(high) else ""
    title = f"{row['model']}: {row['score']:.4f}{interval}, {counted(int(row['n_pairs']), 'question')}"
    return f'<td class="h{colour(row["score"], edges)}" title="{escape(title)}">{row["score"]:.2f}</td>'


def _legend(edges: Sequence[float], scores: pd.Series[Any]) -> str:
    ends = [float(scores.min()), *edges, float(scores.max())]
    steps_shown = "".join(f'<span class="h{at}">{three(low)}</span>' for at, low in enumerate(ends[:-1]))
    return f'<p class="legend">From {steps_shown} up to {three(ends[-1])}</p>'


HEAT_STYLE = "".join(f".h{at}{{background:{ground};color:{ink}}}" for at, (ground, ink) in enumerate(STEPS))
