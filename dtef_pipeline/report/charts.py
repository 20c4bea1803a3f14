"""The charts of the report and of the assets: one function a chart, from a published table to SVG.

Each takes the rows of one table and returns a drawing that stands alone (own colours, light ground), or one that takes the page's colours.
Rows of several context levels or conditions: the first condition with the most context is drawn, for the others do not compare with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.report.drift_chart import HEIGHT as DRIFT_HEIGHT
from dtef_pipeline.report.drift_chart import grouped, timeline
from dtef_pipeline.report.markup import is_unknown, shortened
from dtef_pipeline.report.palette import STEPS, colour, steps
from dtef_pipeline.report.svg import Place, across, as_markdown_image, axis, domain, dot, down, drawing, group, label, line
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.survey.report.groups import asked_alike

__all__ = ["as_markdown_image", "drift_lines", "forest", "heat_map", "panel", "references"]
_SAME = 1e-9
"""Two scores nearer than this are one: sums in another order."""
_ROW, _PANEL_HEIGHT, _PANELS_ACROSS = 32, 170, 3
_SERIES = ("model_variant", "context_level", "condition")


def forest(frame: pd.DataFrame, *, standalone: bool = True) -> str:
    """A dot and its 95 % interval a model, in the board's order, with the marginals and the ceiling as lines. Takes leaderboard rows."""
    rows = _one_group(frame)
    rows = rows[rows["score"].notna()]
    marks = references(rows)
    bounds = [rows.get(name, pd.Series(dtype=float)).dropna() for name in ("score", "score_low", "score_high")]
    low, high = domain([*pd.concat(bounds), *marks.values()])
    place = across(low, high)
    top = 10 + 15 * len(marks)
    bottom = top + _ROW * len(rows) + 4
    # All lines before all labels: the ground around a label breaks the lines that run past it.
    lines = [
        line(place(value), 15 + 15 * at, place(value), bottom, _KINDS[name]) for at, (name, value) in enumerate(marks.items())
    ]
    labels = [
        label(place(value), 12 + 15 * at, f"{name} {value:.3f}", kind="soft halo")
        for at, (name, value) in enumerate(marks.items())
    ]
    models = [_model_row(row, place, top + _ROW * at) for at, row in enumerate(rows.to_dict("records"))]
    said = "; ".join(f"{name} {value:.3f}" for name, value in marks.items())
    title = f"Scores of {len(rows)} models with 95 % intervals, best first. {said}"
    return drawing([axis(place, low, high, top, bottom), *lines, *labels, *models], bottom + 22, title, standalone=standalone)


def references(rows: pd.DataFrame) -> dict[str, float]:
    """The lines to read a board by, where known: what a score could be at best, and those of knowing nothing about the group."""
    known = {LEAVE_ONE_OUT: "leave-one-out marginal", POPULATION_MARGINAL: "population marginal", UNIFORM: "uniform"}
    found = {
        known[model]: float(score)
        for model, score in zip(rows["model"], rows["score"], strict=True)
        if model in known and score == score
    }
    ceilings = rows["ceiling"].dropna() if "ceiling" in rows else pd.Series(dtype=float)
    best = {"ceiling": float(ceilings.median())} if len(ceilings) else {}
    return {**best, **{name: found[name] for name in known.values() if name in found}}


_KINDS = {"ceiling": "ceiling", "leave-one-out marginal": "others", "population marginal": "population", "uniform": "uniform"}


def line_key(marks: Mapping[str, float]) -> str:
    """Markup that says which line is which, for charts whose lines have no labels."""
    samples = (
        f'<span><svg width="28" height="10" aria-hidden="true">{line(0, 5, 100, 5, _KINDS[name])}</svg>{name} {value:.3f}</span>'
        for name, value in marks.items()
    )
    return f'<p class="key">{"".join(samples)}</p>' if marks else ""


def _model_row(row: Mapping[Any, Any], place: Place, y: float) -> str:
    kind = "baseline" if is_computed(str(row["model_variant"])) else ""
    rank = "" if is_unknown(row.get("rank")) else f"{int(row['rank'])}. "
    low, high = row.get("score_low"), row.get("score_high")
    known = not is_unknown(low) and not is_unknown(high)
    said = f"{row['model']}: {row['score']:.4f}" + (f", 95 % interval {low:.4f} to {high:.4f}" if known else ", no interval")
    parts = [line(0, y + _ROW, 100, y + _ROW, "grid"), label(0, y + 13, f"{rank}{row['model']}", kind="halo", anchor="start")]
    if known:
        parts.append(line(place(float(low)), y + 22, place(float(high)), y + 22, f"whisker {kind}"))  # type: ignore[arg-type]
    return group([*parts, dot(place(row["score"]), y + 22, f"dot {kind}")], said)


def heat_map(frame: pd.DataFrame) -> str:
    """Segments down, models across, the mean score as colour and number. Takes rows of `breakdown_segment`; it stands alone."""
    rows = _one_group(frame)
    rows = rows[rows["score"].notna()]
    wide = rows.pivot_table(index=["attribute", "segment"], columns="model", values="score", sort=True, observed=True)
    wide = wide[wide.mean().sort_values(ascending=False, kind="stable").index]
    edges = steps(rows["score"])
    top, size, left = 130, 18, 30.0
    each = (91 - left) / max(len(wide.columns), 1)
    parts = []
    for at, model in enumerate(wide.columns):
        parts.append(
            f'<svg x="{left + each * (at + 0.6):.2f}%" y="{top - 6}" overflow="visible"><g transform="rotate(-45)">'
            f"{label(0, 0, shortened(str(model), 26), anchor='start')}</g></svg>"
        )
    for row, (segment, scores) in enumerate(zip(wide.index.get_level_values("segment"), wide.to_numpy(), strict=True)):
        y = top + size * row
        parts.append(label(left - 1, y + 13, shortened(str(segment), 34), anchor="end"))
        parts += [
            _square(left + each * at, y, each, size, float(value), edges) for at, value in enumerate(scores) if value == value
        ]
    title = f"Mean score of {len(wide.columns)} models in {len(wide)} segments"
    return drawing(parts, top + size * len(wide) + 6, title, standalone=True)


def _square(x: float, y: float, width: float, height: float, value: float, edges: Sequence[float]) -> str:
    fill, ink = STEPS[colour(value, edges)]
    number = (
        f'<text x="{x + width / 2:.2f}%" y="{y + 13}" text-anchor="middle" style="fill:{ink};font-size:10px">{value:.2f}</text>'
    )
    return f'<rect x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="{height}" fill="{fill}"/>{number}'


def drift_lines(series: pd.DataFrame, checks: pd.DataFrame | None = None) -> str:
    """A panel a series: its timeline. Takes rows of `drift_series` and, for what is said of them, of `model_drift`; it stands alone."""
    rows = [] if checks is None else checks.astype(object).where(checks.notna(), None).to_dict("records")
    judged = {tuple(row[name] for name in _SERIES): row for row in rows}
    panels = [timeline(own, judged.get(of)) for of, own in grouped(series.to_dict("records")).items()]
    return _grid(panels, "Score of each snapshot, a panel a series", DRIFT_HEIGHT)


def score_domain(rows: pd.DataFrame, others: Iterable[float] = ()) -> tuple[float, float]:
    """Ends of an axis that holds the scores of all rows, their intervals, and other values."""
    known = [value for name in ("score", "score_low", "score_high") if name in rows for value in rows[name].dropna()]
    return domain([*known, *others])


def panel(
    title: str,
    places: Sequence[str],
    rows: Mapping[str, Mapping[Any, Any]],
    bounds: tuple[float, float],
    marks: Mapping[str, float],
    *,
    sizes: Sequence[float] | None = None,
) -> str:
    """Markup of one small chart: the scores of `rows` at `places`, joined; intervals as whiskers, `marks` as level lines.

    Places are evenly spaced, or where `sizes` (a number a place, rising) says.
    """
    height, top, bottom = down(*bounds, 30, _PANEL_HEIGHT - 26), 30, _PANEL_HEIGHT - 26
    at = _spaced(places, sizes if sizes is not None else range(len(places)))
    parts = [line(14, top, 14, bottom, "axis"), line(14, bottom, 98, bottom, "axis"), label(0, 14, title, anchor="start")]
    parts += [label(0, height(value) + 4, f"{value:.2f}", kind="soft", anchor="start") for value in bounds]
    parts += [
        line(14, height(value), 98, height(value), _KINDS[name])
        for name, value in marks.items()
        if bounds[0] <= value <= bounds[1]
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
            parts.append(label(x, y - 8, f"{rows[place]['score']:.3f}", kind="halo", anchor="middle"))
        parts.append(group([dot(x, y, "dot", 3.5)], f"{title}, {place}: {rows[place]['score']:.4f}"))
    return "".join(parts)


def _spaced(places: Sequence[str], sizes: Sequence[float]) -> dict[str, float]:
    """Where each place stands across a panel, in percent."""
    first, span = (sizes[0], (sizes[-1] - sizes[0]) or 1) if len(sizes) else (0.0, 1.0)
    return {place: 25 + 58 * (size - first) / span for place, size in zip(places, sizes, strict=True)}


def _apart(places: Sequence[str], at: Mapping[str, float], least: float = 0.0) -> list[str]:
    """The first and the last place, and those between that leave room for what is written at each (2.5 % of a panel a letter)."""
    kept: list[str] = []
    for place in [*places[:1], *places[:0:-1]]:  # the first, then from the last backwards
        room = [max(least, 2.5 * (len(place) + len(other)) / 2 + 1) for other in kept]
        if len(kept) < 2 or all(abs(at[place] - at[other]) >= space for other, space in zip(kept, room, strict=True)):
            kept.append(place)
    return kept


def _grid(panels: Sequence[str], title: str, height: int = _PANEL_HEIGHT) -> str:
    each = 100 / _PANELS_ACROSS
    placed = [
        f'<svg x="{each * (at % _PANELS_ACROSS):.2f}%" y="{(height + 12) * (at // _PANELS_ACROSS)}" '
        f'width="{each - 1.5:.2f}%" height="{height}">{markup}</svg>'
        for at, markup in enumerate(panels)
    ]
    rows = -(-len(panels) // _PANELS_ACROSS)
    return drawing(placed, max((height + 12) * rows, 20), title, standalone=True)


def _one_group(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first condition with most context."""
    return next((rows for _, rows in asked_alike(frame, richest=True)), frame)
