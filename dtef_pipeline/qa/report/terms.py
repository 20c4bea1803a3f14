"""What the qa family calls the things that boards and drift are about."""

from __future__ import annotations

from dtef_pipeline.qa.watched_scores import QA_WATCHED
from dtef_pipeline.report.names import Names

QA_NAMES = Names(
    place={},
    asked={"condition": "Asked as", "metric": "Metric", "measured_by": "Measured by"},
    usual={},
    part="part",
    cell="item",
    reference="",
    subject=QA_WATCHED,
)
"""What the qa family calls the things that drift is about."""
