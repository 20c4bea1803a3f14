"""Quality against cost: which policies no other one beats in both, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.report.svg import across, axis, domain, dot, down, drawing, group, label, line, ticks
from dtef_pipeline.text.counted import counted

_PLOT_TOP, _PLOT_BOTTOM, _PLOT_HEIGHT = 30.0, 360.0, 404.0
_LABEL_HEIGHT = 14.0


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
    ends = domain(row["cost_usd"] for row in rows), domain(row["quality"] for row in rows)
    x, y = across(*ends[0]), down(*ends[1], _PLOT_TOP, _PLOT_BOTTOM)
    front = sorted((row for row in rows if row["on_front"]), key=lambda row: (row["cost_usd"], row["quality"]))
    parts = [axis(x, *ends[0], [(_PLOT_TOP, _PLOT_BOTTOM)], _PLOT_BOTTOM)]
    parts += [label(0, y(mark) - 3, f"{mark:.3g}", kind="soft", anchor="start") for mark in ticks(*ends[1])]
    parts += [line(x(a["cost_usd"]), y(a["quality"]), x(b["cost_usd"]), y(b["quality"]), "path") for a, b in pairwise(front)]
    taken: list[tuple[float, float]] = []
    for row in sorted(rows, key=lambda row: -row["quality"]):
        parts.append(_point(row, x(row["cost_usd"]), y(row["quality"]), taken))
    parts.append(label(0, 14, "Quality (mean score, higher is better)", kind="soft", anchor="start"))
    parts.append(label(98, _PLOT_HEIGHT - 8, "US dollars for all items", kind="soft", anchor="end"))
    title = f"Quality against cost of {counted(len(rows), 'policy')}; no other one beats those on the line in both"
    return drawing(parts, _PLOT_HEIGHT, title, standalone=standalone)


def _point(row: Mapping[str, Any], x: float, y: float, taken: list[tuple[float, float]]) -> str:
    """A dot and its name, which makes room for the names that are there."""
    words = f"{row['policy']}: quality {row['quality']:.4f}, ${row['cost_usd']:.4f}"
    height = y - 8
    while any(abs(x - there) < 20 and abs(height - at) < _LABEL_HEIGHT for there, at in taken) and height < _PLOT_BOTTOM - 4:
        height += _LABEL_HEIGHT
    taken.append((x, height))
    kind = "dot" if row["on_front"] else "dot baseline"
    return group([dot(x, y, kind), label(x, height, str(row["policy"]), kind="halo")], words)
