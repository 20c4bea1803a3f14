"""The report: one self-contained HTML page, no network."""

from __future__ import annotations

from html import escape

import duckdb

from dtef_pipeline.report.drift import drift, reliability
from dtef_pipeline.report.leaderboard import comparisons, leaderboard
from dtef_pipeline.report.script import SCRIPT
from dtef_pipeline.report.style import STYLE
from dtef_pipeline.survey.boards.responsiveness import context_shown
from dtef_pipeline.survey.report.attributes import attributes, consistency, metrics
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.gaps import gaps
from dtef_pipeline.survey.report.heatmap import heat_map_section
from dtef_pipeline.survey.report.methodology import methodology
from dtef_pipeline.survey.report.pairs import pairs
from dtef_pipeline.survey.report.quality import costs, quality
from dtef_pipeline.survey.report.questions import questions
from dtef_pipeline.survey.report.tables import Boards, boards, published

SECTIONS = {
    "leaderboard": "Leaderboard",
    "comparisons": "Comparisons",
    "segments": "Segments",
    "pairs": "Pairs",
    "context": "Context",
    "gaps": "Gaps",
    "attributes": "Attributes",
    "metrics": "Metrics",
    "consistency": "Consistency",
    "questions": "Questions",
    "reliability": "Reliability",
    "drift": "Drift",
    "data-quality": "Data quality",
    "costs": "Costs",
    "methodology": "Methodology",
}
"""Anchors of the page's sections and what the table of contents calls them."""


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


def _introduction(metric: str) -> str:
    named = "Jensen-Shannon similarities" if metric == "js" else f"similarities under {escape(metric)}"
    return f"<p>How well models predict the survey answers of demographic groups. Scores are {named} from 0 to 1, higher is better.</p>"


def _sections(connection: duckdb.DuckDBPyConnection, found: Boards, metric: str) -> list[str]:
    """The parts of the page in the order of `SECTIONS`."""
    return [
        leaderboard(found["overall"]),
        comparisons(found["overall"], published(connection, "comparisons")),
        heat_map_section(found["segment"], found["overall"]),
        pairs(connection),
        context(found["overall"], published(connection, "responsiveness"), context_shown(connection)),
        gaps(published(connection, "gaps")),
        attributes(found["attribute"]),
        metrics(found["metric"], found["overall"]),
        consistency(found["consistency"]),
        questions(connection, found["question"], published(connection, "question_gaps")),
        reliability(published(connection, "reliability")),
        drift(connection),
        quality(connection),
        costs(connection),
        methodology(metric),
    ]
