"""The stages and roll-ups of the rubric family, and its jobs."""

import dagster as dg

from assets.rubric.anchors import rubric_anchors
from assets.rubric.drift import rubric_drift
from assets.rubric.report import rubric_report
from assets.rubric.roll_ups import (
    rubric_agreement,
    rubric_board,
    rubric_champions,
    rubric_corrected,
    rubric_costs,
    rubric_validity,
)
from assets.rubric.stages import RUBRIC_STAGES
from assets.rubric.watched_folder import new_blueprint
from assets.stage.boards_after import boards_after_run

RUBRIC_STAGE_KEYS = [dg.AssetKey(stage.name) for stage in RUBRIC_STAGES]
RUBRIC_ROLL_UPS = [
    rubric_board,
    rubric_corrected,
    rubric_champions,
    rubric_agreement,
    rubric_validity,
    rubric_drift,
    rubric_costs,
    rubric_report,
]
rubric_pipeline = dg.define_asset_job(
    "rubric_pipeline",
    selection=dg.AssetSelection.assets(*RUBRIC_STAGE_KEYS),
    description="All stages for the chosen blueprints, in one run. Roll-ups are a run of their own: `rubric_roll_ups`.",
)
rubric_roll_ups = dg.define_asset_job(
    "rubric_roll_ups",
    selection=dg.AssetSelection.assets(*RUBRIC_ROLL_UPS),
    description="Boards, champions, agreement and validity of judges, drift, costs and pages over all that the rubric family has scored.",
    run_tags={"dtef/roll_ups": "rubric"},
)
rubric_night = dg.define_asset_job(
    "rubric_night",
    selection=dg.AssetSelection.assets(*RUBRIC_STAGE_KEYS, rubric_anchors.key),
    description="What the schedule `nightly_rubrics` runs: the stages for the panel's blueprints, and judges shown stored responses again.",
)
rubric_anchors_again = dg.define_asset_job(
    "rubric_anchors_again",
    selection=dg.AssetSelection.assets(rubric_anchors),
    description="Judges are shown stored responses again in a snapshot, so that a drift of judges is told apart from one of models.",
)
rubric_boards_after_run = boards_after_run(
    "rubric_boards_after_run",
    RUBRIC_ROLL_UPS,
    rubric_roll_ups,
    dg.AssetKey("rubric_scores"),
    "Brings the boards of rubrics up to date when a blueprint was scored, whatever run did it.",
)

RUBRIC_JOBS = [rubric_pipeline, rubric_night, rubric_roll_ups, rubric_anchors_again]
RUBRIC_SENSORS = [new_blueprint, rubric_boards_after_run]
