"""Drift of models on all rounds and segments: `survey_drift`."""

from assets.stage.family_drift import FamilyDrift, build_drift_assets
from assets.stage.night_request import build_freshness_policy
from dtef_pipeline.survey.drift_subject import SUBJECT

survey_drift, survey_no_drift = build_drift_assets(
    FamilyDrift(
        subject=SUBJECT,
        code_version="11",
        details="`drift_rule` repeats the results of the stage `drift_checks` for each segment.",
        scores=("scores", "round", "dtef run"),
        group="boards",
        after=("drift_checks",),
        freshness=build_freshness_policy(),
    )
)
