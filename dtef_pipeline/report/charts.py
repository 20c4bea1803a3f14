"""The charts of the report and of the assets: one function for each chart, from a published table to SVG.

Each takes rows of one table that compare, and returns a drawing that stands alone (own colours, light ground), or one that takes the page's
colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.report.drift_chart import HEIGHT as DRIFT_HEIGHT
from dtef_pipeline.report.drift_chart import grouped, series_of, timeline
from dtef_pipeline.report.markup import is_unknown, shortened
from dtef_pipeline.report.palette import STEPS, colour, steps
from dtef_pipeline.report.svg import (
    Place,
    across,
    as_markdown_image,
    axis,
    domain,
    dot,
    down,
    drawing,
    group,
    label,
    line,
    upright,
)
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.text.counted import counted

__all__ = ["Mark", "as_markdown_image", "drift_lines", "facet", "facets", "forest", "heat_map", "line_key", "score_domain"]
ROW, FACET_HEIGHT = 36, 170
"""Pixels of a model in a chart of rows, and of a small chart among others."""
DOT, LONGEST_NAME = 27, 50
"""Of a chart of rows: how far below the top of its row a dot stands, in pixels, and the characters of a name that find room on a phone."""
_NAME_HEIGHT, _KEY_HEIGHT = 19, 17
"""Pixels that a name takes at the top of its row, and a line of the key above a chart."""
SAME_SCORE = 1e-9
"""Two scores nearer than this are one: sums in another order."""
_FACETS_ACROSS = 3


class Mark(NamedTuple):
    """A score to read others by, drawn as a line: what it is called, where it stands, and the class of its line in `CHART_STYLE`."""

    name: str
    value: float
    kind: str


def forest(rows: pd.DataFrame, marks: Sequence[Mark] = (), *, standalone: bool = True) -> str:
    """A dot and its 95 % interval for each model, in the order of the rows, and `marks` as lines. Takes leaderboard rows that compare.

    What the lines are called stands above them with a sample of each, and no line crosses a name: lines are drawn beneath the names alone.
    """
    rows = rows[rows["score"].notna()]
    bounds = [rows.get(name, pd.Series(dtype=float)).dropna() for name in ("score", "score_low", "score_high")]
    low, high = domain([*pd.concat(bounds), *(mark.value for mark in marks)])
    place = across(low, high)
    top = 4 + (_KEY_HEIGHT * len(marks) + 6 if marks else 0)
    bottom, bands = top + ROW * len(rows) + 4, bands_of(top, len(rows))
    keys = [_key(mark, 4 + _KEY_HEIGHT * at) for at, mark in enumerate(marks)]
    lines = [upright(place(mark.value), bands, mark.kind) for mark in marks]
    models = [_model_row(row, place, top + ROW * at) for at, row in enumerate(rows.to_dict("records"))]
    values = "; ".join(f"{mark.name} {mark.value:.3f}" for mark in marks)
    title = f"Scores of {counted(len(rows), 'model')} with 95 % intervals, best first. {values}"
    return drawing([axis(place, low, high, bands, bottom), *keys, *lines, *models], bottom + 22, title, standalone=standalone)


def bands_of(top: float, rows: int) -> list[tuple[float, float]]:
    """Where lines may run in a chart of rows: beneath the name of each row, down to the line that ends it."""
    return [(top + ROW * at + _NAME_HEIGHT, top + ROW * (at + 1)) for at in range(rows)]


def _key(mark: Mark, y: float) -> str:
    sample = f'<line x1="0" y1="{y + 7:.1f}" x2="28" y2="{y + 7:.1f}" class="{mark.kind}"/>'
    return f'{sample}<text x="36" y="{y + 11:.1f}" class="soft">{escape(mark.name)} {mark.value:.3f}</text>'


def line_key(marks: Sequence[Mark]) -> str:
    """Markup that says which line is which, for charts whose lines have no labels."""
    samples = (
        f'<span><svg width="28" height="10" aria-hidden="true">{line(0, 5, 100, 5, mark.kind)}</svg>{mark.name} {mark.value:.3f}</span>'
        for mark in marks
    )
    return f'<p class="key">{"".join(samples)}</p>' if marks else ""


def _model_row(row: Mapping[Any, Any], place: Place, y: float) -> str:
    kind = "baseline" if is_computed(str(row["model_variant"])) else ""
    rank = "" if is_unknown(row.get("rank")) else f"{int(row['rank'])}. "
    low, high = row.get("score_low"), row.get("score_high")
    known = not is_unknown(low) and not is_unknown(high)
    words = f"{row['model']}: {row['score']:.4f}" + (f", 95 % interval {low:.4f} to {high:.4f}" if known else ", no interval")
    name = shortened(f"{rank}{row['model']}", LONGEST_NAME)
    parts = [line(0, y + ROW, 100, y + ROW, "grid"), label(0, y + 14, name, anchor="start")]
    if known:
        parts.append(line(place(float(low)), y + DOT, place(float(high)), y + DOT, f"whisker {kind}"))  # type: ignore[arg-type]
    return group([*parts, dot(place(row["score"]), y + DOT, f"dot {kind}")], words)


def heat_map(rows: pd.DataFrame, down: Sequence[str], what: str) -> str:
    """Models across, the mean score as colour and number. Takes rows that compare; it stands alone.

    `down`: the columns that its rows are sorted by, the last one their name. `what`: what they are, in the plural.
    """
    rows = rows[rows["score"].notna()]
    wide = rows.pivot_table(index=list(down), columns="model", values="score", sort=True, observed=True)
    wide = wide.iloc[:, np.argsort(ranks(wide.mean()), kind="stable")]
    edges = steps(rows["score"])
    top, size, left = 130, 18, 30.0
    each = (91 - left) / max(len(wide.columns), 1)
    parts = []
    for at, model in enumerate(wide.columns):
        parts.append(
            f'<svg x="{left + each * (at + 0.6):.2f}%" y="{top - 6}" overflow="visible"><g transform="rotate(-45)">'
            f"{label(0, 0, shortened(str(model), 26), anchor='start')}</g></svg>"
        )
    for row, (name, scores) in enumerate(zip(wide.index.get_level_values(down[-1]), wide.to_numpy(), strict=True)):
        y = top + size * row
        parts.append(label(left - 1, y + 13, shortened(str(name), 34), anchor="end"))
        parts += [
            _square(left + each * at, y, each, size, float(value), edges) for at, value in enumerate(scores) if value == value
        ]
    title = f"Mean score of {counted(len(wide.columns), 'model')} in {len(wide)} {what}"
    return drawing(parts, top + size * len(wide) + 6, title, standalone=True)


def _square(x: float, y: float, width: float, height: float, value: float, edges: Sequence[float]) -> str:
    fill, ink = STEPS[colour(value, edges)]
    number = (
        f'<text x="{x + width / 2:.2f}%" y="{y + 13}" text-anchor="middle" style="fill:{ink};font-size:10px">{value:.2f}</text>'
    )
    return f'<rect x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="{height}" fill="{fill}"/>{number}'


def drift_lines(series: pd.DataFrame, checks: pd.DataFrame | None = None) -> str:
    """A small chart for each series: its timeline. It stands alone.

    Takes rows of `drift_series` and, for their verdicts, of `drift`.
    """
    rows = [] if checks is None else checks.astype(object).where(checks.notna(), None).to_dict("records")
    verdicts = {series_of(row): row for row in rows}
    drawn = [timeline(own, verdicts.get(of)) for of, own in grouped(series.to_dict("records")).items()]
    return facets(drawn, "Score of each snapshot, one small chart for each series", DRIFT_HEIGHT)


def score_domain(rows: pd.DataFrame, others: Iterable[float] = ()) -> tuple[float, float]:
    """Ends of an axis that holds the scores of all rows, their intervals, and other values."""
    known = [value for name in ("score", "score_low", "score_high") if name in rows for value in rows[name].dropna()]
    return domain([*known, *others])


def facet(
    title: str,
    places: Sequence[str],
    rows: Mapping[str, Mapping[Any, Any]],
    bounds: tuple[float, float],
    marks: Sequence[Mark],
    *,
    sizes: Sequence[float] | None = None,
) -> str:
    """Markup of one small chart: the scores of `rows` at `places`, joined; intervals as whiskers, `marks` as level lines.

    Places are evenly spaced, or where `sizes` (one number for each place, rising) says.
    """
    height, top, bottom = down(*bounds, 30, FACET_HEIGHT - 26), 30, FACET_HEIGHT - 26
    at = _spaced(places, sizes if sizes is not None else range(len(places)))
    parts = [line(14, top, 14, bottom, "axis"), line(14, bottom, 98, bottom, "axis"), label(0, 14, title, anchor="start")]
    parts += [label(0, height(value) + 4, f"{value:.2f}", kind="soft", anchor="start") for value in bounds]
    parts += [
        line(14, height(mark.value), 98, height(mark.value), mark.kind)
        for mark in marks
        if bounds[0] <= mark.value <= bounds[1]
    ]
    parts += [label(at[place], bottom + 15, place, kind="soft", anchor="middle") for place in _apart(places, at)]
    known = [place for place in places if place in rows and not is_unknown(rows[place]["score"])]
    numbered = _apart(known, at, least=14)
    dots = [(at[place], height(rows[place]["score"])) for place in known]
    parts += [line(*a, *b, "path") for a, b in pairwise(dots)]
    for place, (x, y) in zip(known, dots, strict=True):
        low, high = rows[place].get("score_low"), rows[place].get("score_high")
        if not is_unknown(low) and not is_unknown(high):
            parts.append(line(x, height(low), x, height(high), "whisker"))  # type: ignore[arg-type]
        if place in numbered:
            drop = _free_of([height(mark.value) for mark in marks], y, bottom)
            parts.append(label(x, y + drop, f"{rows[place]['score']:.3f}", kind="halo", anchor="middle"))
        parts.append(group([dot(x, y, "dot", 3.5)], f"{title}, {place}: {rows[place]['score']:.4f}"))
    return "".join(parts)


def _free_of(lines: Sequence[float], y: float, bottom: float) -> float:
    """How far from a dot its number stands (pixels, above it below 0): above, or beneath where lines run above and none does there."""
    above = any(y - 18 < line < y - 3 for line in lines)
    beneath = any(y + 5 < line < y + 20 for line in lines) or y + 20 > bottom
    return 17 if above and not beneath else -8


def _spaced(places: Sequence[str], sizes: Sequence[float]) -> dict[str, float]:
    """Where each place stands across a facet, in percent."""
    first, span = (sizes[0], (sizes[-1] - sizes[0]) or 1) if len(sizes) else (0.0, 1.0)
    return {place: 25 + 58 * (size - first) / span for place, size in zip(places, sizes, strict=True)}


def _apart(places: Sequence[str], at: Mapping[str, float], least: float = 0.0) -> list[str]:
    """The first and the last place, and those between that leave room for what is written at each (2.5 % of a facet per letter)."""
    kept: list[str] = []
    for place in [*places[:1], *places[:0:-1]]:  # the first, then from the last backwards
        room = [max(least, 2.5 * (len(place) + len(other)) / 2 + 1) for other in kept]
        if len(kept) < 2 or all(abs(at[place] - at[other]) >= space for other, space in zip(kept, room, strict=True)):
            kept.append(place)
    return kept


def facets(drawn: Sequence[str], title: str, height: int = FACET_HEIGHT) -> str:
    each = 100 / _FACETS_ACROSS
    placed = [
        f'<svg x="{each * (at % _FACETS_ACROSS):.2f}%" y="{(height + 12) * (at // _FACETS_ACROSS)}" '
        f'width="{each - 1.5:.2f}%" height="{height}">{markup}</svg>'
        for at, markup in enumerate(drawn)
    ]
    rows = -(-len(drawn) // _FACETS_ACROSS)
    return drawing(placed, max((height + 12) * rows, 20), title, standalone=True)
