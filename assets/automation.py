"""Jobs, the nightly schedule and the sensor for new rounds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from assets.aggregate import segment_results
from assets.blueprint import blueprints
from assets.boards import breakdowns, costs, leaderboard
from assets.drift import drift_checks
from assets.ingest import survey_responses
from assets.predict import predictions
from assets.report import report
from assets.resources import Store
from assets.rounds import known_keys, range_tags, ranges, register_round
from assets.score import scores
from assets.statistics import comparisons, gaps, reliability, responsiveness
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.adapters import read_surveys
from dtef_pipeline.survey.observe import MIN_N
from resources.settings import Settings
from resources.survey_source import SurveySources, content_hash

STAGES = [survey_responses, blueprints, predictions, scores, segment_results, drift_checks]
BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, gaps, reliability]
ROLL_UPS = [*BOARDS, costs, report]
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
    description="Boards, the tests of what they show, costs and the report, over everything there is.",
)


def nightly_config(snapshot: str, models: Sequence[str]) -> dict[str, Any]:
    """Run configuration of a nightly pass: everything in the snapshot named after the night."""
    of_snapshot = {"config": {"snapshot": snapshot}}
    return {
        "ops": {
            "predictions": {"config": {"snapshot": snapshot, "models": list(models)}},
            "scores": of_snapshot,
            "segment_results": of_snapshot,
        }
    }


@dg.schedule(
    job=nightly_drift,
    cron_schedule="0 2 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night at 2: all partitions in a snapshot named after the date, with the models of DTEF_NIGHTLY_MODELS.",
)
def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Every night at 2: all partitions in a snapshot named after the date, with the models of DTEF_NIGHTLY_MODELS. Off until switched on."""
    keys = known_keys(context.instance)
    if not keys:
        return dg.SkipReason("no round has been ingested yet")
    night = context.scheduled_execution_time.date().isoformat()
    return dg.RunRequest(
        run_key=night,
        run_config=nightly_config(night, Settings.from_environment().nightly_models),
        tags={**range_tags(keys), "dtef/snapshot": night},
    )


@dg.sensor(
    job=round_pipeline,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Watches the folder DTEF_SURVEYS: a round that is new or has changed is registered and run.",
)
def new_round(context: dg.SensorEvaluationContext, store: Store) -> dg.SensorResult | dg.SkipReason:
    """Watches the folder DTEF_SURVEYS. A round that is new or has changed, and did not change since the last look, is registered and run.

    What cannot be read is reported here and does not hold up the others. Off until switched on.
    """
    folder = Settings.from_environment().surveys
    if not folder.is_dir():
        return dg.SkipReason(f"the landing folder {folder} does not exist (DTEF_SURVEYS)")
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    now: dict[str, str] = {}
    requests: list[dg.RunRequest] = []
    broken: list[str] = []
    for path in sorted(folder.iterdir()):
        try:
            if not path.name.startswith("."):
                now[path.name] = content_hash(path)
        except OSError as error:  # a dangling link, or a file that vanished while it was being copied
            broken.append(f"{path}: {error.strerror}")
    for name, hashed in now.items():
        if seen.get(name) != hashed:  # still landing, or new since the last look: wait for it to stay as it is
            continue
        try:
            requests += _land(context.instance, store.sources, folder / name, hashed)
        except DtefError as error:
            broken.append(str(error))
            context.log.error(str(error))
    reason = "; ".join(broken) or f"nothing new and complete in {folder}"
    return dg.SensorResult(
        run_requests=requests, cursor=json.dumps(now), skip_reason=None if requests else dg.SkipReason(reason)
    )


def _land(instance: dg.DagsterInstance, sources: SurveySources, path: Path, hashed: str) -> list[dg.RunRequest]:
    """The runs that landed rounds ask for, if they are new or changed; their partitions are registered first."""
    requests = []
    for survey in read_surveys(path):
        source = sources.get(survey.round)
        if source is not None and source.content_hash == hashed:
            continue
        keys, _ = register_round(instance, sources, survey, path, min_n=source.min_n if source else MIN_N)
        for part in ranges(known_keys(instance), keys):
            requests.append(dg.RunRequest(run_key=f"{survey.round}:{hashed}:{part[0]}", tags=range_tags(part)))
    return requests


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[round_pipeline, nightly_drift],
    request_job=roll_ups,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings leaderboard, breakdowns and report up to date after a run that the sensor or the schedule started.",
)
def boards_after_run(context: dg.RunStatusSensorContext) -> dg.RunRequest:
    return dg.RunRequest(run_key=context.dagster_run.run_id)


JOBS = [round_pipeline, nightly_drift, roll_ups]
SCHEDULES = [nightly]
SENSORS = [new_round, boards_after_run]
