"""Rendering of files: HTML with everything escaped, data as scripts, and shared files."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dtef_pipeline.site.content import (
    SEARCH_FROM,
    Chart,
    DataFile,
    Estimate,
    Link,
    Page,
    drop_empty_sections,
    footnotes,
    is_unknown,
    list_constant_columns,
    list_shown_columns,
)
from dtef_pipeline.site.number_text import show, show_interval
from dtef_pipeline.site.paths import PAGE_MARK, SCRIPT_MARK
from dtef_pipeline.text.json_values import simplify_value
from dtef_pipeline.text.printable import make_visible


@cache
def environment() -> Environment:
    """Return the environment of `site/templates`: everything is escaped, invisible characters are shown, and undefined names are errors.

    A form field sends its value back, so use `| e` there, which only escapes.
    """
    env = Environment(
        loader=PackageLoader("dtef_pipeline.site"),
        autoescape=True,
        finalize=lambda value: make_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        show=show,
        interval=show_interval,
        json=render_script_json,
        list_shown_columns=list_shown_columns,
        constants=list_constant_columns,
        footnotes=footnotes,
        chart_values=_link_chart,
        ticks=_format_code,
    )
    env.tests.update(
        unknown=is_unknown,
        link=lambda value: isinstance(value, Link),
        estimate=lambda value: isinstance(value, Estimate),
        several=lambda value: isinstance(value, list | tuple) and not isinstance(value, Link | Estimate),
    )
    env.globals.update(page_mark=Markup(PAGE_MARK), search_from=SEARCH_FROM, model_paths={})  # noqa: S704
    env.globals["kind_of"] = lambda block: type(block).__name__
    return env


def render_script_json(value: Any) -> Markup:
    """Return JSON for a script element; its texts can neither end the element nor begin another."""
    return Markup(_format_json(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704


def _format_json(value: Any) -> str:
    """Return a value as JSON; NaN, NA and infinities become null."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return write(value)
    except (TypeError, ValueError):  # something that JSON cannot hold: rare in large data
        return write(simplify_value(value))


def _format_code(text: str) -> Markup:
    """Return our own text escaped, with text in backticks as code."""
    escaped = str(Markup.escape(make_visible(text)))
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", escaped))  # noqa: S704


def _link_chart(chart: Chart, model_paths: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of the script's charts; a row of a model links to the page of the model."""
    rows = [{**row, "href": path} if (path := model_paths.get(row.get("label", ""))) else row for row in chart.rows]
    return {"rows": rows, "lines": list(chart.lines)}


def render_page(page: Page, shared: Mapping[str, Any]) -> str:
    """Render a page as HTML. `shared`: values for all pages, such as the families in the navigation."""
    root = "../" * page.path.count("/")
    sections = drop_empty_sections(page.sections)
    values = {**shared, **page.values}
    return environment().get_template(page.template).render(page=page, sections=sections, root=root, **values)


def render_data(data: DataFile) -> str:
    """Return the script of a data file: its JSON, compressed, under its path."""
    payload = base64.b64encode(gzip.compress(_format_json(data.value).encode(), compresslevel=6, mtime=0)).decode()
    return f'{SCRIPT_MARK}dtef.receive("{data.path}","{payload}");\n'


@cache
def static_files() -> Sequence[tuple[str, str]]:
    """Return (path, text) of the files that all pages share: style, scripts, chart definitions and the chart library.

    They are made once per process: the library takes more than a second.
    """
    # Commands and servers without a chart need not wait for these.
    import vl_convert

    from dtef_pipeline.site.charts import CHARTS, chart_definition

    paths = [path for path in files("dtef_pipeline.site").joinpath("static").iterdir() if path.name.endswith((".css", ".js"))]
    definitions = {name: chart_definition(name) for name in CHARTS}
    library = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    return [
        *((f"static/{path.name}", f"{SCRIPT_MARK}\n{path.read_text(encoding='utf-8')}") for path in paths),
        ("static/charts.js", f"{SCRIPT_MARK}dtef.charts={render_script_json(definitions)};\n"),
        ("static/vega.js", f"{SCRIPT_MARK}{library}"),
    ]
