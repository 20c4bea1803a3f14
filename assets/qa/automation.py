"""The stages and roll-ups of the qa family, and its jobs."""

import dagster as dg

from assets.qa.anchors import qa_anchors
from assets.qa.boards import qa_board
from assets.qa.drift import qa_drift
from assets.qa.report import qa_report
from assets.qa.roll_ups import qa_costs, qa_validity
from assets.qa.stages import QA_STAGES
from assets.stage.boards_after import boards_after_run

QA_STAGE_KEYS = [dg.AssetKey(stage.name) for stage in QA_STAGES]
QA_ROLL_UPS = [qa_board, qa_costs, qa_validity, qa_drift, qa_report]
qa_pipeline = dg.define_asset_job(
    "qa_pipeline",
    selection=dg.AssetSelection.assets(*QA_STAGE_KEYS),
    description="All stages for the chosen parts, in one run. Roll-ups are a run of their own: `qa_roll_ups`.",
)
qa_roll_ups = dg.define_asset_job(
    "qa_roll_ups",
    selection=dg.AssetSelection.assets(*QA_ROLL_UPS),
    description="Boards, comparisons, pass@k, drift, costs, validity and the pages of all that the qa family has scored.",
    run_tags={"dtef/roll_ups": "qa"},
)

qa_night = dg.define_asset_job(
    "qa_night",
    selection=dg.AssetSelection.assets(*QA_STAGE_KEYS, qa_anchors.key),
    description="What the schedule `nightly_questions` runs: the stages for the panel's parts, and the judge shown stored answers again.",
)
qa_anchors_again = dg.define_asset_job(
    "qa_anchors_again",
    selection=dg.AssetSelection.assets(qa_anchors),
    description="The judge is shown stored answers again in a snapshot, so that its drift is told apart from that of models.",
)
qa_boards_after_run = boards_after_run(
    "qa_boards_after_run",
    QA_ROLL_UPS,
    qa_roll_ups,
    QA_STAGE_KEYS[-1],
    "Brings the boards of questions up to date when a part was scored, whatever run did it.",
)

QA_JOBS = [qa_pipeline, qa_night, qa_roll_ups, qa_anchors_again]
QA_SENSORS = [qa_boards_after_run]
