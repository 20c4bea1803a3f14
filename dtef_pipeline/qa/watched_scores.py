"""What is watched for drift of the qa family: scores of items, night by night, beside the documented rule.

A series is a model variant in one condition under one metric and measure, over all parts. An edited item, another expected answer, another
version of a scorer or another judge makes other items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.drift.item_statements import watched_statements
from dtef_pipeline.drift.subject import JudgedAgain, Subject
from dtef_pipeline.keys import Keys
from dtef_pipeline.qa.anchored_answers import points_of_anchors
from dtef_pipeline.qa.netted_scores import net_of_judge

QA_WATCHED_KEYS = Keys(
    space=("suite", "part"),
    item="item_id",
    noun="item",
    asked=("condition", "metric", "measured_by"),
    cluster="cluster",
    score_again="score those parts again with `dtef qa run`",
)
_WATCHED_ITEM_SCORES = """
    SELECT suite::VARCHAR AS suite, part::VARCHAR AS part, item_id, condition, coalesce(metric, '') AS metric,
        coalesce(measured_by, '') AS measured_by, model, model_variant, snapshot::VARCHAR AS snapshot, temperature, draw, score, status,
        prompt_id, truth_id, answered_at
    FROM qa_scores
"""


def _way_of_answering(row: Mapping[str, Any]) -> str:
    return f"{row['condition']}, {row['metric']} by {row['measured_by']}"


QA_WATCHED = Subject(
    family="qa",
    keys=QA_WATCHED_KEYS,
    way=_way_of_answering,
    truth="expected answer",
    truths="expected answers",
    reads=("qa_scores", "qa_responses"),
    statements=watched_statements(_WATCHED_ITEM_SCORES, "qa_responses", "suite", QA_WATCHED_KEYS.asked, ("condition",)),
    judged_again=JudgedAgain("qa_anchors", points_of_anchors, net_of_judge),
    unlike="asked other items",
)
"""Scores of items. A part may have too few items for a verdict of its own."""
