"""The charts of the site, made with Altair: one definition each, which pages fill with rows; and charts as images for Dagster's metadata
and files.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import altair as alt

from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.json_values import simplify_value

_ROW_DATA, _LINE_DATA = alt.NamedData(name="rows"), alt.NamedData(name="lines")
_VALUE_SCALE = alt.Scale(zero=False, nice=True, padding=12)
_VALUES = alt.Axis(tickCount=6, labelFlush=False, title=None)
_UNTITLED = alt.Axis(labelLimit=260, title=None)
_SNAPSHOTS = alt.X("at:O", sort=None, axis=alt.Axis(title=None, labelAngle=-40))


def _build_definition(chart: alt.TopLevelMixin) -> dict[str, Any]:
    return {**chart.to_dict(), "autosize": {"type": "fit-x", "contains": "padding"}, "width": "container"}


def intervals() -> dict[str, Any]:
    """Define a dot and an interval for each row, in their order: `label`, `value`, `low`, `high`; reference lines are vertical."""
    numbers = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")]
    base = alt.Chart(_ROW_DATA).encode(y=alt.Y("label:N", sort=None, axis=_UNTITLED), tooltip=["label:N", *numbers])
    interval = base.mark_bar(size=3, opacity=0.6, aria=False).encode(
        x=alt.X("low:Q", scale=_VALUE_SCALE, axis=_VALUES), x2="high:Q"
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", scale=_VALUE_SCALE, axis=_VALUES), href="href:N"
    )
    legend = alt.Legend(title=None, orient="bottom", columns=1, symbolType="stroke", labelLimit=400)
    line = alt.Chart(_LINE_DATA).mark_rule(strokeDash=[5, 3], strokeWidth=2)
    line = line.encode(
        x="value:Q",
        color=alt.Color("label:N", sort=None, legend=legend),
        tooltip=["label:N", alt.Tooltip("value:Q", format=".3f")],
    )
    return _build_definition(alt.layer(interval, dot, line).properties(height=alt.Step(24)))


def timeline() -> dict[str, Any]:
    """Define the scores of one series by snapshot: `at` (text), `value`, and `kind`, which colours dots; reference lines are horizontal."""
    base = alt.Chart(_ROW_DATA).encode(x=_SNAPSHOTS, y=alt.Y("value:Q", scale=_VALUE_SCALE, title=None))
    tooltip = ["at:O", "kind:N", alt.Tooltip("value:Q", format=".4f"), "note:N"]
    color = alt.Color("kind:N", legend=alt.Legend(orient="top", title=None))
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(color=color, tooltip=tooltip)
    levels = alt.Chart(_LINE_DATA).mark_rule(strokeDash=[5, 3]).encode(y="value:Q", tooltip=["label:N"])
    return _build_definition(alt.layer(base.mark_line(opacity=0.5), dots, levels).properties(height=220))


def series() -> dict[str, Any]:
    """Define a line for each of several series: `at` (text), `value`, `label`."""
    base = alt.Chart(_ROW_DATA).encode(x=_SNAPSHOTS, y=alt.Y("value:Q", scale=_VALUE_SCALE, title=None))
    color = alt.Color("label:N", legend=alt.Legend(orient="bottom", title=None, columns=1, labelLimit=400))
    chart = base.mark_line(point=True).encode(color=color, tooltip=["at:O", "label:N", alt.Tooltip("value:Q", format=".4f")])
    return _build_definition(chart.properties(height=260))


def bars() -> dict[str, Any]:
    """Define a bar for each `label`: `value`, coloured by `kind`."""
    chart = (
        alt.Chart(_ROW_DATA)
        .mark_bar()
        .encode(
            y=alt.Y("label:N", sort=None, axis=_UNTITLED),
            x=alt.X("value:Q", title=None),
            yOffset="kind:N",
            color=alt.Color("kind:N", legend=alt.Legend(orient="top", title=None)),
            tooltip=["label:N", "kind:N", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    return _build_definition(chart.properties(height=alt.Step(22)))


CHARTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "intervals": intervals,
    "timeline": timeline,
    "series": series,
    "bars": bars,
}
"""Functions that build the definition of a chart, by name."""


@cache
def chart_definition(name: str) -> Mapping[str, Any]:
    """Return the definition of a chart of `CHARTS`, cached because Altair's checks are slow; do not change it."""
    return CHARTS[name]()


_WIDTH = 620
_CONFIG = {"background": "white", "font": "sans-serif", "view": {"stroke": None}}


def render_svg(chart: Chart) -> str:
    """Render the chart as an SVG image, 620 pixels wide plus labels."""
    import vl_convert

    overrides = {
        "autosize": "pad",
        "width": _WIDTH,
        "padding": 25,
        "config": _CONFIG,
        "title": {"text": chart.caption, "fontSize": 12},
    }
    data = {"rows": simplify_value(chart.rows), "lines": simplify_value(chart.lines)}
    definition = {**chart_definition(chart.kind)}
    if not chart.lines and "layer" in definition:
        # Vega gives the legend of no lines an infinite height.
        definition["layer"] = [layer for layer in definition["layer"] if layer.get("data", {}).get("name") != "lines"]
    image: str = vl_convert.vegalite_to_svg({**definition, **overrides, "datasets": data})
    return image


def render_markdown_image(chart: Chart) -> str:
    """Render the image as Markdown, for Dagster's metadata."""
    image = base64.b64encode(render_svg(chart).encode()).decode()
    return f"![chart](data:image/svg+xml;base64,{image})"
