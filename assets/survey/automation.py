"""Jobs, and the sensors that start them."""

import dagster as dg

from assets.engine.family_jobs import stage_keys
from assets.stage.boards_after import boards_after_run
from assets.survey.boards import breakdowns, comparisons, leaderboard, reliability, responsiveness, segment_gaps, survey_costs
from assets.survey.landing import new_round
from assets.survey.report import report
from assets.survey.stages import SURVEY_STAGES
from assets.survey.survey_drift import survey_drift

BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, segment_gaps, reliability]
ROLL_UPS = [*BOARDS, survey_costs, survey_drift, report]
round_pipeline = dg.define_asset_job(
    "round_pipeline",
    selection=dg.AssetSelection.assets(*stage_keys(SURVEY_STAGES)),
    description="All six stages for the partitions of a round, in one run. Roll-ups are a run of their own: `roll_ups`.",
)
nightly_drift = dg.define_asset_job(
    "nightly_drift",
    selection=dg.AssetSelection.assets(*stage_keys(SURVEY_STAGES)[2:]),
    description="Ask the same prompts again in a new snapshot, score them, and compare with earlier nights.",
)
roll_ups = dg.define_asset_job(
    "roll_ups",
    selection=dg.AssetSelection.assets(*ROLL_UPS),
    description="Boards, the tests of what they show, costs, drift of the models and the report, over everything there is.",
    # One at a time: `dagster.yaml` limits this tag.
    run_tags={"dtef/roll_ups": "all"},
)


survey_boards_after_run = boards_after_run(
    "boards_after_run",
    ROLL_UPS,
    roll_ups,
    dg.AssetKey("segment_results"),
    "Brings leaderboard, breakdowns and report up to date when a segment was scored, whatever run did it: a command, a job, a backfill, "
    "a click, or a run in which other segments failed.",
)


JOBS = [round_pipeline, nightly_drift, roll_ups]
SENSORS = [new_round, survey_boards_after_run]
