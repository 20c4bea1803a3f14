"""The chapters of the survey family in the report."""

from __future__ import annotations

from html import escape

import duckdb

from dtef_pipeline.report.drift import drift, reliability
from dtef_pipeline.report.leaderboard import comparisons, leaderboard
from dtef_pipeline.survey.boards.responsiveness import context_shown
from dtef_pipeline.survey.report.attributes import attributes, consistency, metrics
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.gaps import gaps
from dtef_pipeline.survey.report.heatmap import heat_map_section
from dtef_pipeline.survey.report.methodology import methodology
from dtef_pipeline.survey.report.pairs import pairs
from dtef_pipeline.survey.report.quality import costs, quality
from dtef_pipeline.survey.report.questions import questions
from dtef_pipeline.survey.report.tables import Boards, published

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
