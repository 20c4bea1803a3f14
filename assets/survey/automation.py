"""Jobs, and the sensors that start them."""

import dagster as dg

from assets.stage.partitions import process_tag
from assets.survey.aggregate import segment_results
from assets.survey.blueprint import blueprints
from assets.survey.boards import breakdowns, costs, leaderboard
from assets.survey.drift import drift_checks
from assets.survey.ingest import survey_responses
from assets.survey.landing import new_round
from assets.survey.model_drift import model_drift
from assets.survey.predict import predictions
from assets.survey.report import report
from assets.survey.score import scores
from assets.survey.statistics import comparisons, gaps, reliability, responsiveness

STAGES = [survey_responses, blueprints, predictions, scores, segment_results, drift_checks]
BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, gaps, reliability]
ROLL_UPS = [*BOARDS, costs, model_drift, report]
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


def _boards_after(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
    """A roll-up reads everything, so one that still waits sees this run too: ten rounds that land together need no ten roll-ups."""
    to_come = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED]
    queued = dg.RunsFilter(job_name=roll_ups.name, statuses=to_come)
    if waiting := context.instance.get_run_records(queued, limit=1):
        return dg.SkipReason(f"run {waiting[0].dagster_run.run_id} waits in the queue and will see what this run made")
    return dg.RunRequest(run_key=context.dagster_run.run_id)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[round_pipeline, nightly_drift],
    request_job=roll_ups,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings leaderboard, breakdowns and report up to date after a run that the sensor or the schedule started.",
)
def boards_after_run(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
    return _boards_after(context)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.FAILURE,
    request_job=roll_ups,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings leaderboard, breakdowns and report up to date after a run in which some partitions failed and others were scored.",
)
def boards_after_partial_failure(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
    """One bad segment does not keep the others off the boards. Backfills too: of those Dagster starts no roll-up once a partition failed."""
    run = context.dagster_run
    if process_tag(run):
        return dg.SkipReason("a `dtef` command started this run, and makes the boards itself")
    made = context.instance.get_asset_keys_for_run(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    if made.isdisjoint({scores.key, segment_results.key}):
        return dg.SkipReason("nothing was scored in this run")
    return _boards_after(context)


JOBS = [round_pipeline, nightly_drift, roll_ups]
SENSORS = [new_round, boards_after_run, boards_after_partial_failure]
