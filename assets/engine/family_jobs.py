"""The jobs of a family, and the sensor that keeps its roll-ups up to date."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dagster as dg

from assets.engine.roll_up_names import REPORT
from assets.stage.boards_sensor import boards_after_run
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.stage import Stage


class FamilyJobs(NamedTuple):
    """The jobs and the sensor of a family."""

    pipeline: Any
    """All stages."""
    roll_ups: Any
    boards_after_run: dg.SensorDefinition


def family_jobs(
    family: Family, stages: Sequence[Stage], roll_ups: Sequence[dg.AssetsDefinition], scores_name: str = ""
) -> FamilyJobs:
    """Return the jobs NAME_pipeline and NAME_roll_ups, and the sensor NAME_boards_after_run.

    `scores_name`: the stage that boards need, by default that of scores.
    """
    name, part, keys = family.name, family.part, stage_keys(stages)
    pipeline = dg.define_asset_job(
        f"{name}_pipeline",
        selection=dg.AssetSelection.assets(*keys),
        description=f"All stages for the chosen {part}s, in one run. Roll-ups are a run of their own: `{name}_roll_ups`.",
    )
    # Excludes the report, which also depends on other families' boards.
    boards = [asset for asset in roll_ups if asset.key != dg.AssetKey(REPORT)]
    rolled_up = ", ".join(f"`{asset.key.to_user_string()}`" for asset in roll_ups)
    rolling = dg.define_asset_job(
        f"{name}_roll_ups",
        selection=dg.AssetSelection.assets(*roll_ups),
        description=f"{rolled_up}, over all that the {name} family has scored.",
        run_tags={"dtef/roll_ups": name},
    )
    scores = dg.AssetKey(scores_name or family.scores_table)
    description = f"Brings the roll-ups of the {name} family up to date when a {part} was scored, whatever run did it."
    return FamilyJobs(pipeline, rolling, boards_after_run(f"{name}_boards_after_run", boards, rolling, scores, description))


def stage_keys(stages: Sequence[Stage]) -> list[dg.AssetKey]:
    """Return the asset keys of these stages."""
    return [dg.AssetKey(stage.name) for stage in stages]
