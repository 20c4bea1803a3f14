"""The roll-ups of the survey family, its jobs, and the sensors that start them."""

import dagster as dg

from assets.engine.family_jobs import family_jobs, stage_keys
from assets.engine.site_report import report
from assets.survey.boards import breakdowns, comparisons, leaderboard, reliability, responsiveness, segment_gaps, survey_costs
from assets.survey.landing import new_round
from assets.survey.stages import SURVEY_STAGES
from assets.survey.survey_drift import survey_drift
from dtef_pipeline.families import FAMILY_BY_NAME

BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, segment_gaps, reliability]
SURVEY_ROLL_UPS = [*BOARDS, survey_costs, survey_drift, report]
survey_pipeline, survey_roll_ups, survey_boards_after_run = family_jobs(
    FAMILY_BY_NAME["survey"], SURVEY_STAGES, SURVEY_ROLL_UPS, scores_name="segment_results"
)
nightly_drift = dg.define_asset_job(
    "nightly_drift",
    selection=dg.AssetSelection.assets(*stage_keys(SURVEY_STAGES)[2:]),
    description="Repeats the same prompts in a new snapshot, scores the responses, and compares them with earlier nights.",
)

SURVEY_JOBS = [survey_pipeline, nightly_drift, survey_roll_ups]
SURVEY_SENSORS = [new_round, survey_boards_after_run]
