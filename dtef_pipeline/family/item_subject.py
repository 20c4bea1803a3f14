"""The drift subject of a family whose board the engine computes: scores of items over snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.drift.subject import Subject, build_statements
from dtef_pipeline.family.item_scores import build_scores_sql
from dtef_pipeline.family.record import Family
from dtef_pipeline.keys import Keys


def item_subject(family: Family) -> Subject:
    """Return the drift subject; a series is one model variant, condition and metric over all partitions."""
    space, columns = family.space, family.scores
    keys = Keys(
        space=(space.first, space.second),
        item="item_id",
        noun="item",
        asked=columns.board,
        cluster="cluster",
        cluster_noun=columns.cluster_noun,
        score_again=f"score them again with `dtef {family.name} run`",
    )

    def describe_setting(row: Mapping[str, Any]) -> str:
        return ", ".join(str(row[name]) for name in columns.board)

    return Subject(
        family=family.name,
        keys=keys,
        describe_setting=describe_setting,
        truth="expected answer",
        truths="expected answers",
        reads=(family.scores_table, family.responses),
        statements=build_statements(
            build_scores_sql(family.scores_table, space, columns), family.responses, space.first, columns.board, columns.asked
        ),
        reason_left_out="had too few comparable items",
    )
