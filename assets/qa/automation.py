"""The roll-ups of the qa family, and its jobs."""

import dagster as dg

from assets.engine.family_jobs import family_jobs, stage_keys
from assets.qa.anchors import qa_anchors
from assets.qa.boards import qa_board
from assets.qa.drift import qa_drift
from assets.qa.report import qa_report
from assets.qa.roll_ups import qa_costs, qa_validity
from assets.qa.stages import QA_STAGES

QA_ROLL_UPS = [qa_board, qa_costs, qa_validity, qa_drift, qa_report]
qa_pipeline, qa_roll_ups, qa_boards_after_run = family_jobs("qa", "part", QA_STAGES, QA_ROLL_UPS)
qa_night = dg.define_asset_job(
    "qa_night",
    selection=dg.AssetSelection.assets(*stage_keys(QA_STAGES), qa_anchors.key),
    description="What the schedule `nightly_questions` runs: the stages for the panel's parts, and the judge shown stored answers again.",
)
qa_anchors_again = dg.define_asset_job(
    "qa_anchors_again",
    selection=dg.AssetSelection.assets(qa_anchors),
    description="The judge is shown stored answers again in a snapshot, so that its drift is told apart from that of models.",
)

QA_JOBS = [qa_pipeline, qa_night, qa_roll_ups, qa_anchors_again]
QA_SENSORS = [qa_boards_after_run]
