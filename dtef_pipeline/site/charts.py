"""The charts of the site, made with Altair: one definition each, which pages fill with rows; and charts as image files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import altair as alt

from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.json_values import simplify_value

_ROW_DATA, _LINE_DATA = alt.NamedData(name="rows"), alt.NamedData(name="lines")
_UNTITLED = alt.Axis(labelLimit=260, title=None)
_SNAPSHOTS = alt.X("at:O", sort=None, axis=alt.Axis(title=None, labelAngle=-40))
_SCALE = alt.Scale(zero=False, nice=True, padding=12)
_VALUES = alt.Y("value:Q", scale=_SCALE, title=None)
_VALUE_HINT = alt.Tooltip("value:Q", format=".4f")


def intervals() -> alt.TopLevelMixin:
    """Draw a dot and an interval for each row, in their order: `label`, `value`, `low`, `high`; reference lines are vertical."""
    hints = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")]
    base = alt.Chart(_ROW_DATA).encode(y=alt.Y("label:N", sort=None, axis=_UNTITLED), tooltip=["label:N", *hints])
    place = partial(alt.X, scale=_SCALE, axis=alt.Axis(tickCount=6, labelFlush=False, title=None))
    interval = base.mark_bar(size=3, opacity=0.6, aria=False).encode(x=place("low:Q"), x2="high:Q")
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(x=place("value:Q"), href="href:N")
    legend = alt.Legend(title=None, orient="bottom", columns=1, symbolType="stroke", labelLimit=400)
    line = alt.Chart(_LINE_DATA).mark_rule(strokeDash=[5, 3], strokeWidth=2)
    line = line.encode(x="value:Q", color=alt.Color("label:N", sort=None, legend=legend), tooltip=["label:N", hints[0]])
    return alt.layer(interval, dot, line).properties(height=alt.Step(24))


def timeline() -> alt.TopLevelMixin:
    """Draw the scores of one series by snapshot: `at` (text), `value`, and `kind`, which colours dots; reference lines are horizontal."""
    base = alt.Chart(_ROW_DATA).encode(x=_SNAPSHOTS, y=_VALUES)
    color = alt.Color("kind:N", legend=alt.Legend(orient="top", title=None))
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        color=color, tooltip=["at:O", "kind:N", _VALUE_HINT, "note:N"]
    )
    lines = alt.Chart(_LINE_DATA).mark_rule(strokeDash=[5, 3]).encode(y="value:Q", tooltip=["label:N"])
    return alt.layer(base.mark_line(opacity=0.5), dots, lines).properties(height=220)


def series() -> alt.TopLevelMixin:
    """Draw a line for each `label` over `at` (text): `value`."""
    color = alt.Color("label:N", legend=alt.Legend(orient="bottom", title=None, columns=1, labelLimit=400))
    base = alt.Chart(_ROW_DATA).mark_line(point=True)
    chart: alt.Chart = base.encode(x=_SNAPSHOTS, y=_VALUES, color=color, tooltip=["at:O", "label:N", _VALUE_HINT])
    return chart.properties(height=260)


def bars() -> alt.TopLevelMixin:
    """Draw a bar for each `label`: `value`, coloured by `kind`."""
    chart: alt.Chart = (
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
    return chart.properties(height=alt.Step(22))


CHARTS: Mapping[str, Callable[[], alt.TopLevelMixin]] = {
    "intervals": intervals,
    "timeline": timeline,
    "series": series,
    "bars": bars,
}
"""Functions that draw a chart, by name."""


@cache
def chart_definition(name: str) -> Mapping[str, Any]:
    """Return the definition of a chart of `CHARTS`, cached because Altair's checks are slow; do not change it."""
    return {**CHARTS[name]().to_dict(), "autosize": {"type": "fit-x", "contains": "padding"}, "width": "container"}


def render_svg(chart: Chart) -> str:
    """Render the chart as an SVG image, 620 pixels wide plus labels."""
    import vl_convert

    definition = {
        **chart_definition(chart.kind),
        "autosize": "pad",
        "width": 620,
        "padding": 25,
        "config": {"background": "white", "font": "sans-serif", "view": {"stroke": None}},
        "title": {"text": chart.caption, "fontSize": 12},
        "datasets": {"rows": simplify_value(chart.rows), "lines": simplify_value(chart.lines)},
    }
    if not chart.lines and "layer" in definition:
        # Vega gives the legend of no lines an infinite height.
        definition["layer"] = [layer for layer in definition["layer"] if layer.get("data", {}).get("name") != "lines"]
    image: str = vl_convert.vegalite_to_svg(definition)
    return image
