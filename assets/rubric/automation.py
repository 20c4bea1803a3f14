"""The roll-ups of the rubric family, and its jobs."""

import dagster as dg

from assets.engine.family_jobs import family_jobs, stage_keys
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
rubric_pipeline, rubric_roll_ups, rubric_boards_after_run = family_jobs("rubric", "blueprint", RUBRIC_STAGES, RUBRIC_ROLL_UPS)
rubric_night = dg.define_asset_job(
    "rubric_night",
    selection=dg.AssetSelection.assets(*stage_keys(RUBRIC_STAGES), rubric_anchors.key),
    description="What the schedule `nightly_rubrics` runs: the stages for the panel's blueprints, and judges shown stored responses again.",
)
rubric_anchors_again = dg.define_asset_job(
    "rubric_anchors_again",
    selection=dg.AssetSelection.assets(rubric_anchors),
    description="Judges are shown stored responses again in a snapshot, so that a drift of judges is told apart from one of models.",
)

RUBRIC_JOBS = [rubric_pipeline, rubric_night, rubric_roll_ups, rubric_anchors_again]
RUBRIC_SENSORS = [new_blueprint, rubric_boards_after_run]
