"""The timeline of one series: the score of each snapshot against the baseline, and the shift where there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.drift.verdict_text import odds
from dtef_pipeline.report.svg import Place, domain, dot, down, group, label, line
from dtef_pipeline.text.counted import counted

HEIGHT = 190
_TOP, _BOTTOM, _PLOT_LEFT, _PLOT_RIGHT = 46, HEIGHT - 26, 11.0, 98.0
_LEAST = 0.1
"""Least height of a timeline in units of the score: twice the smallest gap that the documented rule looks at."""
Rows = Sequence[Mapping[Any, Any]]


def timeline(rows: Rows, check: Mapping[Any, Any] | None = None) -> str:
    """Markup of one series. `rows`: its rows of DRIFT_SERIES in their order in time; `check`: its row of DRIFT.

    A compared snapshot stands at the baseline's mean plus its paired difference, so that failed calls do not move it by which of them failed;
    one that is not compared at its own mean, hollow.
    """
    check = check or {}
    levels = {str(row["snapshot"]): level for row in rows if (level := _level(row, baseline_mean(rows))) is not None}
    low, middle, high = _band(rows, check)
    bounds = domain([*levels.values(), low, high], least=_LEAST)
    height, at = down(*bounds, _TOP, _BOTTOM), _places(rows)
    parts = [
        line(_PLOT_LEFT, _TOP, _PLOT_LEFT, _BOTTOM, "axis"),
        line(_PLOT_LEFT, _BOTTOM, _PLOT_RIGHT, _BOTTOM, "axis"),
        *_titles(rows, check),
    ]
    parts += [label(0, height(value) + 4, f"{value:.2f}", kind="soft", anchor="start") for value in bounds]
    parts += _ends(rows, at)
    if (mean := baseline_mean(rows)) is not None:
        parts.append(line(_PLOT_LEFT, height(mean), _PLOT_RIGHT, height(mean), "uniform"))
    if (since := _since(rows, check)) is not None:
        parts += _shifted(at[since], height, (low, middle, high), bool(check.get("first_snapshot")))
    parts += _path([(at[str(row["snapshot"])], height(levels[str(row["snapshot"])])) for row in rows if _is_drawn(row, levels)])
    return "".join(parts + [_dot(row, at, levels, height) for row in rows if str(row["snapshot"]) in levels])


def baseline_mean(rows: Rows) -> float | None:
    known = [row["score"] - row["difference"] for row in rows if row["in_baseline"] and _is_known(row["difference"])]
    return sum(known) / len(known) if known else None


def described(rows: Rows, check: Mapping[Any, Any]) -> str:
    """What the drawing shows, in words."""
    scores = ", ".join(f"{row['snapshot']}: {row['score']:.4f}" for row in rows if _is_known(row["score"]))
    return f"{check['model']}, {check['way']}, {_verdict(check)}; {scores}"


def _level(row: Mapping[Any, Any], mean: float | None) -> float | None:
    if row["compared"] and mean is not None and _is_known(row["difference"]):
        return float(mean + row["difference"])
    return float(row["score"]) if _is_known(row["score"]) else None


def _is_known(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _is_drawn(row: Mapping[Any, Any], levels: Mapping[str, float]) -> bool:
    return bool(row["compared"]) and str(row["snapshot"]) in levels


def _since(rows: Rows, check: Mapping[Any, Any]) -> str | None:
    """The first snapshot that the shift is about."""
    later = [str(row["snapshot"]) for row in rows if row["compared"] and not row["in_baseline"]]
    return (check.get("first_snapshot") or next(iter(later), None)) if _is_known(check.get("shift")) else None


def _band(rows: Rows, check: Mapping[Any, Any]) -> tuple[float | None, float | None, float | None]:
    """The level since the change, between the ends of its interval; all None where there is no shift to show."""
    since, mean = _since(rows, check), baseline_mean(rows)
    if since is None or mean is None:
        return None, None, None
    labels = [str(row["snapshot"]) for row in rows]
    before = [row["difference"] for row in rows[: labels.index(since)] if row["compared"] and _is_known(row["difference"])]
    level = mean + (sum(before) / len(before) if before else 0.0)
    low, middle, high = (
        level + check[name] if _is_known(check[name]) else None for name in ("shift_low", "shift", "shift_high")
    )
    return low, middle, high


def _places(rows: Rows) -> dict[str, float]:
    """Where each snapshot stands across, by its date; evenly where one has no date."""
    labels = [str(row["snapshot"]) for row in rows]
    times = [snapshot_time(one, None) for one in labels]
    known = [time.timestamp() for time in times if time is not None]
    sizes = known if len(known) == len(labels) and len(set(known)) > 1 else [float(at) for at in range(len(labels))]
    span = (sizes[-1] - sizes[0]) or 1.0
    left, right = _PLOT_LEFT + 3, _PLOT_RIGHT - 2
    return {one: left + (right - left) * (size - sizes[0]) / span for one, size in zip(labels, sizes, strict=True)}


def _titles(rows: Rows, check: Mapping[Any, Any]) -> list[str]:
    name = f"{check['model']}, {check['way']}" if check else str(rows[0]["model"])
    return [label(0, 14, name, anchor="start"), label(0, 31, _verdict(check), kind="soft", anchor="start")]


def _verdict(check: Mapping[Any, Any]) -> str:
    if check.get("verdict") is None:
        return "not compared" if check else ""
    since = check["first_snapshot"] or "the baseline"
    return f"{check['verdict']}: {check['shift']:+.4f} since {since}" if _is_known(check["shift"]) else str(check["verdict"])


def _ends(rows: Rows, at: Mapping[str, float]) -> list[str]:
    first, last = str(rows[0]["snapshot"]), str(rows[-1]["snapshot"])
    marks = [label(at[first], _BOTTOM + 15, first, kind="soft", anchor="start")]
    return [*marks, label(at[last], _BOTTOM + 15, last, kind="soft", anchor="end")] if last != first else marks


def _shifted(x: float, height: Place, band: Sequence[float | None], is_drift: bool) -> list[str]:
    low, middle, high = band
    start = x - 1.2
    parts = []
    if low is not None and high is not None:
        top, bottom = height(high), height(low)
        style = f"fill:var(--{'mark' if is_drift else 'reference'});fill-opacity:.2"
        parts.append(
            f'<rect x="{start:.2f}%" y="{top:.1f}" width="{_PLOT_RIGHT - start:.2f}%" height="{max(bottom - top, 1):.1f}" style="{style}"/>'
        )
    if middle is not None and is_drift:
        parts += [
            line(start, height(middle), _PLOT_RIGHT, height(middle), "others"),
            line(start, _TOP, start, _BOTTOM, "population"),
        ]
    return parts


def _path(dots: Sequence[tuple[float, float]]) -> list[str]:
    return [line(*a, *b, "path") for a, b in pairwise(dots)]


def _dot(row: Mapping[Any, Any], at: Mapping[str, float], levels: Mapping[str, float], height: Place) -> str:
    name = str(row["snapshot"])
    kind = "dot" if row["compared"] else "dot baseline"
    return group([dot(at[name], height(levels[name]), kind, 2.6)], _said(row))


def _said(row: Mapping[Any, Any]) -> str:
    parts = [f"{row['snapshot']}: {row['score']:.4f}" if _is_known(row["score"]) else str(row["snapshot"])]
    if row["compared"]:
        parts.append(
            "baseline" if row["in_baseline"] else f"{row['difference']:+.4f} to the baseline, odds {odds(row['log10_e'])}"
        )
    else:
        parts.append(f"not compared: {row['n_shared']} of {counted(row['n_prompts'], 'prompt')} shared")
    if _is_known(row["parse_rate"]):
        parts.append(f"parsed {100 * row['parse_rate']:.1f} %")
    return "; ".join([*parts, *(f"served by {', '.join(models)}" for models in [row["served_models"]] if len(models))])


def key() -> str:
    """Markup that says which mark is which."""
    mark = 'style="fill:var(--mark);fill-opacity:.2"'
    samples = {
        "snapshot": dot(50, 5, "dot", 2.6),
        "snapshot left out of the comparison": dot(50, 5, "dot baseline", 2.6),
        "mean of the baseline": line(0, 5, 100, 5, "uniform"),
        "level since the change, 95 % interval": f'<rect width="100%" height="10" {mark}/>{line(0, 5, 100, 5, "others")}',
        "first snapshot of the change": line(50, 0, 50, 10, "population"),
    }
    drawn = (
        f'<span><svg width="28" height="10" aria-hidden="true">{mark}</svg>{name}</span>' for name, mark in samples.items()
    )
    return f'<p class="key">{"".join(drawn)}</p>'


def series_of(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Which series a row of DRIFT_SERIES or DRIFT is about: a model variant, asked one way."""
    return str(row["model_variant"]), str(row["way"])


def grouped(series: Rows) -> dict[tuple[str, str], Rows]:
    """Rows of DRIFT_SERIES by their series, in the order they have."""
    found: dict[tuple[str, str], list[Mapping[Any, Any]]] = {}
    for row in series:
        found.setdefault(series_of(row), []).append(row)
    return dict(found)
