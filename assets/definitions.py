"""What Dagster loads."""

import warnings

import dagster as dg

# Single-run backfills make a round one run. Dagster warns that they are beta at every asset that has one, when the asset is imported.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

from assets.evaluations.queue_sensor import evaluation_queue
from assets.games import decisions, episodes, results
from assets.games import drift as games_drift
from assets.games import items as games_items
from assets.games import prompts as games_prompts
from assets.games import report as games_report
from assets.games import scores as games_scores
from assets.games.automation import GAMES_JOBS, GAMES_SENSORS, games_pipeline
from assets.games.night import GAMES_SCHEDULES
from assets.preference import score_checks, stored_votes, voted_scores
from assets.preference.vote_sensor import PREFERENCE_SENSORS
from assets.preference.voted_scores import PREFERENCE_JOBS
from assets.qa import anchors as qa_anchors
from assets.qa import boards as qa_boards
from assets.qa import drift as qa_drift
from assets.qa import executions, items, prompts
from assets.qa import judgements as qa_judgements
from assets.qa import report as qa_report
from assets.qa import responses as qa_responses
from assets.qa import roll_ups as qa_roll_ups
from assets.qa import scores as qa_scores
from assets.qa.automation import QA_JOBS, QA_SENSORS, qa_night, qa_pipeline
from assets.qa.files import qa_files
from assets.qa.night import QA_SCHEDULES
from assets.rubric import anchors, corrected, embeddings, judgements, points, responses, roll_ups, summaries
from assets.rubric import blueprints as rubric_blueprints
from assets.rubric import boards as rubric_boards
from assets.rubric import drift as rubric_drift
from assets.rubric import report as rubric_report
from assets.rubric import scores as rubric_scores
from assets.rubric.automation import RUBRIC_JOBS, RUBRIC_SENSORS, rubric_night, rubric_pipeline
from assets.rubric.files import rubric_files
from assets.rubric.night import RUBRIC_SCHEDULES
from assets.survey import aggregate, blueprint, boards, drift, ingest, landing, model_drift, predict, report, score, statistics
from assets.survey.automation import JOBS, SENSORS, nightly_drift, round_pipeline
from assets.survey.nightly import SCHEDULES
from assets.survey.rounds import survey_files
from assets.survey.store import SurveyStore

__all__ = ["defs"]

_RUBRIC = [
    rubric_blueprints,
    responses,
    judgements,
    embeddings,
    points,
    rubric_scores,
    summaries,
    rubric_boards,
    roll_ups,
    rubric_drift,
    corrected,
    anchors,
    rubric_report,
]
_QA = [
    items,
    prompts,
    qa_responses,
    qa_judgements,
    executions,
    qa_scores,
    qa_boards,
    qa_roll_ups,
    qa_drift,
    qa_anchors,
    qa_report,
]
_GAMES = [games_items, games_prompts, episodes, games_scores, results, decisions, games_drift, games_report]
_SURVEY = [ingest, blueprint, predict, score, aggregate, drift, boards, statistics, model_drift, report]
_VOTED = [stored_votes, voted_scores, score_checks]
_MODULES = [*_SURVEY, *_RUBRIC, *_QA, *_GAMES, *_VOTED]
_SCORING = [games_pipeline, rubric_pipeline, rubric_night, qa_pipeline, qa_night, round_pipeline, nightly_drift]
_QUEUE = evaluation_queue(_SCORING)

defs = dg.Definitions(
    assets=[survey_files, rubric_files, qa_files, *dg.load_assets_from_modules(_MODULES)],
    asset_checks=dg.load_asset_checks_from_modules([*_MODULES, landing]),
    jobs=[*JOBS, *RUBRIC_JOBS, *QA_JOBS, *GAMES_JOBS, *PREFERENCE_JOBS],
    schedules=[*SCHEDULES, *RUBRIC_SCHEDULES, *QA_SCHEDULES, *GAMES_SCHEDULES],
    sensors=[*SENSORS, *RUBRIC_SENSORS, *QA_SENSORS, *GAMES_SENSORS, *PREFERENCE_SENSORS, _QUEUE],
    resources={"store": SurveyStore()},
    # One process per run: a stage is seconds of work, starting a process for it would cost more.
    executor=dg.in_process_executor,
)
