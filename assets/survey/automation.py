"""Jobs, and the sensors that start them."""

import dagster as dg

from assets.stage.boards_after import boards_after_run
from assets.survey.aggregate import segment_results
from assets.survey.blueprint import blueprints
from assets.survey.boards import breakdowns, comparisons, leaderboard, reliability, responsiveness, segment_gaps, survey_costs
from assets.survey.drift import drift_checks
from assets.survey.ingest import survey_responses
from assets.survey.landing import new_round
from assets.survey.predict import predictions
from assets.survey.report import report
from assets.survey.score import scores
from assets.survey.survey_drift import survey_drift

STAGES = [survey_responses, blueprints, predictions, scores, segment_results, drift_checks]
BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, segment_gaps, reliability]
ROLL_UPS = [*BOARDS, survey_costs, survey_drift, report]
round_pipeline = dg.define_asset_job(
    "round_pipeline",
    selection=dg.AssetSelection.assets(*STAGES),
    description="All six stages for the partitions of a round, in one run. Roll-ups are a run of their own: `roll_ups`.",
)
nightly_drift = dg.define_asset_job(
    "nightly_drift",
    selection=dg.AssetSelection.assets(predictions, scores, segment_results, drift_checks),
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
    segment_results.key,
    "Brings leaderboard, breakdowns and report up to date when a segment was scored, whatever run did it: a command, a job, a backfill, "
    "a click, or a run in which other segments failed.",
)


JOBS = [round_pipeline, nightly_drift, roll_ups]
SENSORS = [new_round, survey_boards_after_run]
