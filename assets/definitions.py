"""Dagster's definitions."""

import warnings

import dagster as dg

# Single-run backfills make a round one run. Dagster warns at import, for every asset with one, that they are beta.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

from assets import plugin_assets
from assets.evaluations.queue_sensor import build_queue_sensor
from assets.games.nightly import GAMES_SCHEDULES
from assets.games.roll_ups import GAMES_JOBS, GAMES_SENSORS, games_pipeline
from assets.preference.score_assets import PREFERENCE_JOBS, PREFERENCE_SENSORS
from assets.qa.nightly import QA_SCHEDULES
from assets.qa.roll_ups import QA_JOBS, QA_SENSORS, qa_nightly, qa_pipeline
from assets.rubric.nightly import RUBRIC_SCHEDULES
from assets.rubric.roll_ups import RUBRIC_JOBS, RUBRIC_SENSORS, rubric_nightly, rubric_pipeline
from assets.stage.drift_webhook import drift_webhook
from assets.survey.landing import SURVEY_JOBS, SURVEY_SENSORS, survey_nightly, survey_pipeline
from assets.survey.nightly import SURVEY_SCHEDULES
from dtef_pipeline.families import PLUGIN_FAMILIES

__all__ = ["defs"]

_PLUGIN = [plugin_assets.load_family_assets(family.name) for family in PLUGIN_FAMILIES]
_SCORING = [
    games_pipeline,
    rubric_pipeline,
    rubric_nightly,
    qa_pipeline,
    qa_nightly,
    survey_pipeline,
    survey_nightly,
    *(item.pipeline for item in _PLUGIN),
]
_QUEUE = build_queue_sensor(_SCORING)

defs = dg.Definitions(
    **plugin_assets.collect_plugin_assets(*plugin_assets.EVERY_FAMILY),
    jobs=[*SURVEY_JOBS, *RUBRIC_JOBS, *QA_JOBS, *GAMES_JOBS, *PREFERENCE_JOBS, *(job for item in _PLUGIN for job in item.jobs)],
    schedules=[
        *SURVEY_SCHEDULES,
        *RUBRIC_SCHEDULES,
        *QA_SCHEDULES,
        *GAMES_SCHEDULES,
        *(schedule for item in _PLUGIN for schedule in item.schedules),
    ],
    sensors=[
        *SURVEY_SENSORS,
        *RUBRIC_SENSORS,
        *QA_SENSORS,
        *GAMES_SENSORS,
        *PREFERENCE_SENSORS,
        _QUEUE,
        drift_webhook,
        *(sensor for item in _PLUGIN for sensor in item.sensors),
    ],
)
