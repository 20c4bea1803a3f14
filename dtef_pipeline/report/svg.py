"""Drawing with SVG: places across are percentages, places down are pixels, so that text keeps its size on any width."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np

Place = Callable[[float], float]
"""A value as a place across, in percent of the drawing's width."""
LEFT, RIGHT = 2.0, 98.0
CHART_STYLE = """
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px}
svg .grid{stroke:var(--rule)}svg .axis{stroke:var(--soft)}svg .whisker,svg .path{stroke:var(--model);stroke-width:2px}
svg .whisker.baseline{stroke:var(--reference)}svg .dot{fill:var(--model);stroke:var(--model);stroke-width:2px}
svg .dot.baseline{fill:var(--paper);stroke:var(--reference)}svg .ceiling{stroke:var(--ceiling);stroke-width:1.5px}
svg .others{stroke:var(--mark);stroke-width:1.5px}svg .population{stroke:var(--mark);stroke-dasharray:5 3}
svg .uniform{stroke:var(--soft);stroke-dasharray:2 3}
svg .bar{fill:var(--model)}svg .title{font-weight:600}
svg .middle{stroke:var(--ink);stroke-width:2px}
"""
LIGHT = "--ink:#1c2430;--soft:#566171;--paper:#ffffff;--rule:#dfe4ea;--model:#1f5fa8;--reference:#7d8894;--mark:#b45309;--ceiling:#047857"
DARK = "--ink:#e6eaf0;--soft:#a9b3c0;--paper:#12161c;--rule:#2c3540;--model:#7db4f0;--reference:#8d99a7;--mark:#fbb04f;--ceiling:#4ade9b"
WIDTH = 760
"""Of a drawing that stands alone, in pixels."""


def across(low: float, high: float) -> Place:
    """Values from `low` to `high` placed between the margins; what lies outside is placed at the edge."""
    span = high - low if high > low else 1.0
    return lambda value: LEFT + (RIGHT - LEFT) * min(max((value - low) / span, 0.0), 1.0)


def down(low: float, high: float, top: float, bottom: float) -> Place:
    """Values placed between two heights in pixels, the greatest at the top."""
    span = high - low if high > low else 1.0
    return lambda value: bottom - (bottom - top) * min(max((value - low) / span, 0.0), 1.0)


def domain(values: Iterable[float | None], *, least: float = 0.02) -> tuple[float, float]:
    """Rounded ends around all known values: at least `least` apart; 0 to 1 when nothing is known."""
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if high - low < least:
        low, high = low - least / 2, high + least / 2
    step = _step(high - low)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    return [round(value, 10) for value in np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step]


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five of them make the span."""
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}" class="{kind}"/>'


def dot(x: float, y: float, kind: str, radius: float = 4.5) -> str:
    return f'<circle cx="{x:.2f}%" cy="{y:.1f}" r="{radius:g}" class="{kind}"/>'


def label(x: float, y: float, words: str, *, kind: str = "", anchor: str = "") -> str:
    """Text at a place; without an anchor it leans inwards, so that it does not leave the drawing."""
    leaning = anchor or ("start" if x < 33 else "end" if x > 67 else "middle")
    return f'<text x="{x:.2f}%" y="{y:.1f}" text-anchor="{leaning}" class="{kind}">{escape(words)}</text>'


def group(parts: Iterable[str], title: str) -> str:
    """Parts that share what is shown when they are pointed at."""
    return f"<g><title>{escape(title)}</title>{''.join(parts)}</g>"


def axis(place: Place, low: float, high: float, bands: Sequence[tuple[float, float]], bottom: float) -> str:
    """Grid lines, each drawn in the bands alone (heights of top and bottom), and the numbers beneath them."""
    marks = ticks(low, high)
    digits = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9)) if len(marks) > 1 else 2
    return "".join(
        upright(place(mark), bands, "grid")
        + label(place(mark), bottom + 15, f"{mark:.{digits}f}", kind="soft", anchor=_within(place(mark)))
        for mark in marks
    )


def upright(x: float, bands: Sequence[tuple[float, float]], kind: str) -> str:
    """A line from top to bottom that is drawn in the bands alone, so that it crosses no text between them."""
    return "".join(line(x, top, x, bottom, kind) for top, bottom in bands)


def _within(x: float) -> str:
    """The middle of a number goes under its line, but at the edges, where half of it would be cut."""
    return "start" if x < LEFT + 1 else "end" if x > RIGHT - 1 else "middle"


def drawing(parts: Sequence[str], height: float, title: str, *, standalone: bool) -> str:
    """An SVG as wide as its place; one that stands alone has a width, light colours and a ground of its own."""
    size = f'width="{WIDTH if standalone else "100%"}" height="{height:.0f}"'
    named = f'role="img" aria-label="{escape(title)}"'
    if not standalone:
        return f"<svg {size} {named}>{''.join(parts)}</svg>"
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named} style="{LIGHT}"><style>{CHART_STYLE}</style>{ground}{"".join(parts)}</svg>'


def as_markdown_image(svg: str, words: str = "chart") -> str:
    """The drawing inside a markdown text, as an image that needs no file."""
    return f"![{words}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
