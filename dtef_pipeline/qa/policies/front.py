"""Quality against cost: which policies no other one beats in both, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.report.svg import across, axis, domain, dot, down, drawing, group, label, line, ticks
from dtef_pipeline.text.counted import counted

_PLOT_TOP, _PLOT_BOTTOM, _PLOT_HEIGHT = 30.0, 360.0, 404.0
_FRONT_LEFT = 7.0
"""Where the plot begins, in percent: what is left of it is for the numbers of the upright axis."""
_PERCENT_A_LETTER = 0.9
_TIMES_ON_A_PHONE = 2
"""A drawing on a phone is narrower by so much, and its letters are as large."""
_ASIDE = 1.8
"""From a dot to its name, in percent: more than half a dot, on a phone too."""


def pareto_front(cost: npt.NDArray[np.float64], quality: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """(n,) whether no other one costs as little or less and is as good or better, with one of both strictly. False where either is NaN."""
    known = np.isfinite(cost) & np.isfinite(quality)
    cheaper, better = cost[None, :] <= cost[:, None], quality[None, :] >= quality[:, None]
    strictly = (cost[None, :] < cost[:, None]) | (quality[None, :] > quality[:, None])
    beaten = (cheaper & better & strictly & known[None, :]).any(axis=1)
    return np.asarray(known & ~beaten)


def pareto_plot(results: pa.Table, *, standalone: bool = True) -> str:
    """An SVG of POLICY_RESULTS: a dot for each policy whose cost is known, cost across and quality upwards, with the front as a line.

    Policies that another one beats in both are hollow. Where no cost is known it says so.
    """
    rows = [row for row in results.to_pylist() if row["cost_usd"] is not None and row["quality"] is not None]
    if not rows:
        words = "no data: the cost of no policy is known"
        return drawing([label(50, 40, words, anchor="middle")], 80, words, standalone=standalone)
    ends = domain((row["cost_usd"] for row in rows), least=1e-9), domain(row["quality"] for row in rows)
    whole = across(*ends[0])
    y = down(*ends[1], _PLOT_TOP, _PLOT_BOTTOM)
    dots = {row["policy"]: (_FRONT_LEFT + (1 - _FRONT_LEFT / 100) * whole(row["cost_usd"]), y(row["quality"])) for row in rows}
    front = [dots[row["policy"]] for row in sorted(rows, key=lambda row: (row["cost_usd"], row["quality"])) if row["on_front"]]
    parts = [
        axis(
            lambda value: _FRONT_LEFT + (1 - _FRONT_LEFT / 100) * whole(value),
            *ends[0],
            [(_PLOT_TOP, _PLOT_BOTTOM)],
            _PLOT_BOTTOM,
        )
    ]
    for mark in ticks(*ends[1]):
        parts += [
            line(_FRONT_LEFT, y(mark), 98, y(mark), "grid"),
            label(_FRONT_LEFT - 1, y(mark) + 4, f"{mark:.3g}", kind="soft", anchor="end"),
        ]
    parts += [line(*one, *other, "path") for one, other in pairwise(front)]
    parts += _named(rows, dots)
    parts.append(label(0, 14, "Quality (mean score, higher is better)", kind="soft", anchor="start"))
    parts.append(label(98, _PLOT_HEIGHT - 8, "US dollars for all items", kind="soft", anchor="end"))
    title = f"Quality against cost of {counted(len(rows), 'policy')}; no other one beats those on the line in both"
    return drawing(parts, _PLOT_HEIGHT, title, standalone=standalone)


def _named(rows: Sequence[Mapping[str, Any]], dots: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Each dot and its name, where it covers no other name and no dot, if there is such a place beside it."""
    taken = [_Box(x - 0.8, x + 0.8, y - 6, y + 6) for x, y in dots.values()]
    for row in rows:
        x, y = dots[row["policy"]]
        places = list(_beside(x, y, row["policy"]))
        at, height, anchor, box = next(
            (place for place in places if not any(place[3].covers(other) for other in taken)), places[0]
        )
        taken.append(box)
        kind = {True: "dot", False: "dot baseline", None: "dot beyond"}[row["on_front"]]
        words = f"{row['policy']}: quality {row['quality']:.4f}, ${row['cost_usd']:.4f}"
        yield group([dot(x, y, kind), label(at, height, row["policy"], kind="halo", anchor=anchor)], words)


class _Box(NamedTuple):
    """What a name or a dot takes: percent across, pixels down."""

    left: float
    right: float
    top: float
    bottom: float

    def covers(self, other: _Box) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


def _beside(x: float, y: float, name: str) -> Iterator[tuple[float, float, str, _Box]]:
    """Places of a name that lie within the drawing: across, down, anchor and what it takes."""
    width = _PERCENT_A_LETTER * len(name)
    for lower in (4, -9, 17, -23, 31, -37, 45):
        for at, anchor, left in (
            (x + _ASIDE, "start", x + _ASIDE),
            (x - _ASIDE, "end", x - _ASIDE - width),
            (x, "middle", x - width / 2),
        ):
            if anchor == "middle" and lower == 4:
                continue
            box = _Box(left, left + width, y + lower - 11, y + lower + 3)
            wider = width * (_TIMES_ON_A_PHONE - 1) * (0.5 if anchor == "middle" else 1)
            before, behind = wider * (anchor != "start"), wider * (anchor != "end")
            if box.left - before >= _FRONT_LEFT and box.right + behind <= 100:
                yield at, y + lower, anchor, box
    yield x + _ASIDE, y + 4, "start", _Box(x + _ASIDE, x + _ASIDE + width, y - 7, y + 7)  # for a name that has no room anywhere
