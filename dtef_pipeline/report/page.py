"""The report: one self-contained HTML page, no network."""

from __future__ import annotations

from html import escape

import duckdb

from dtef_pipeline.report.script import SCRIPT
from dtef_pipeline.report.style import STYLE
from dtef_pipeline.survey.report.chapters import SECTIONS, _introduction, _sections
from dtef_pipeline.survey.report.tables import boards


def build_report(connection: duckdb.DuckDBPyConnection) -> str:
    """The page, from a connection with the pipeline's views (`scores` at least). Equal tables give an equal page."""
    rounds = [name for (name,) in connection.execute("SELECT DISTINCT round FROM scores ORDER BY 1").fetchall()]
    title = f"DTEF: {', '.join(map(escape, rounds)) or 'no round'}"
    links = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name in SECTIONS.items())
    found = boards(connection)
    metric = str(found["overall"]["metric"].iloc[0]) if len(found["overall"]) else "js"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f'<body><a class="skip" href="#main">Skip to the numbers</a><header><h1>{title}</h1>{_introduction(metric)}</header>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav><main id="main">{"".join(_sections(connection, found, metric))}</main>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )
