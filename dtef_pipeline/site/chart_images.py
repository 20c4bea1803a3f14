"""Charts as images, for places that cannot draw them: Dagster's metadata, and files."""

from __future__ import annotations

import base64

from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.json_values import simplify_value

_WIDTH = 620
_CONFIG = {"background": "white", "font": "sans-serif", "view": {"stroke": None}}


def render_svg(chart: Chart) -> str:
    """Render the chart as an SVG image, 620 pixels wide plus labels."""
    import vl_convert

    from dtef_pipeline.site.charts import chart_definition  # loads Altair, which assets without a chart need not wait for

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
