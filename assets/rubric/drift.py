"""Drift of models between runs of the same test: `rubric_drift`."""

from assets.stage.family_drift import FamilyDrift, define_drift
from dtef_pipeline.rubric.watched_drift import WATCHED

rubric_drift, rubric_no_drift, rubric_verdicts_were_sent = define_drift(
    FamilyDrift(
        subject=WATCHED,
        code_version="5",
        besides="Where judges were shown stored answers again (`rubric_anchors`), `net_shift` is a model's shift net of theirs.",
        scores=("rubric_scores", "blueprint", "dtef rubric run"),
    )
)
