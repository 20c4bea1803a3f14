"""The key columns of the survey family."""

from __future__ import annotations

from dtef_pipeline.keys import Keys

# A partition is GD4/country:kenya. The cluster is a battery of questions, in all segments, linked over rounds. A circular question is one that
# defines the segment it is asked of.
KEYS = Keys(
    space=("round", "segment"),
    item="question_id",
    noun="question",
    asked=("context_level", "condition"),
    cluster="cluster",
    cluster_noun="battery",
    left_out="circular",
    groups={
        "overall": (),
        "round": ("round",),
        "segment": ("segment", "attribute", "value"),
        "attribute": ("attribute",),
        "question": ("round", "question_id"),
    },
    score_again="score those rounds again with `dtef run --from ingest --round ROUND`",
)
