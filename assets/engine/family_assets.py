"""All Dagster definitions of an assembled family: files, stages, checks, roll-ups, jobs, a sensor, and its nightly schedule."""

from typing import Any, NamedTuple

import dagster as dg

from assets.engine.board_assets import build_board_asset
from assets.engine.family_jobs import family_jobs
from assets.engine.family_nights import NightPlan, build_night_schedule
from assets.engine.part_files import all_stages, build_file_source
from assets.engine.site_report import report
from assets.engine.stage_assets import stage_assets
from assets.stage.family_costs import build_costs_asset
from assets.stage.family_drift import FamilyDrift, build_drift_assets
from assets.stage.file_notes import list_partitions
from assets.stage.request_batches import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.family.item_scores import OVERALL, compute_item_boards
from dtef_pipeline.family.item_subject import item_subject
from dtef_pipeline.family.record import Family, FamilyBoard, Preview
from dtef_pipeline.family.run_settings import PartSettings, run_config
from dtef_pipeline.family.stage import Stage, Tables
from dtef_pipeline.text.name_matching import filter_by_patterns
from dtef_pipeline.text.quantity_words import format_plural


class FamilyAssets(NamedTuple):
    """The definitions of one family."""

    assets: list[Any]
    checks: list[dg.AssetChecksDefinition]
    pipeline: Any
    """The job of its stages."""
    jobs: list[Any]
    sensors: list[dg.SensorDefinition]
    schedules: list[dg.ScheduleDefinition]


def assemble(family: Family) -> FamilyAssets:
    """Return the definitions of a family that the engine assembles."""
    partitions = dg.DynamicPartitionsDefinition(name=family.space.name)
    files = build_file_source(
        family.name,
        partitions,
        f"The file of each {family.part}: one partition, observed when it is added (`dtef {family.name} add`). Its data version is a hash of "
        f"the file: if the file is newer than the data in `{family.first_table}`, the partition is stale at once.",
    )
    stages = all_stages(family)
    assets = stage_assets(family, stages)
    run = f"dtef {family.name} run"
    costs = build_costs_asset(family, [stage.name for stage in stages if stage.asks])
    drift, *drift_checks = build_drift_assets(
        FamilyDrift(item_subject(family), code_version="1", details="", scores=(family.scores_table, family.part, run))
    )
    boards = [build_board_asset(family, board) for board in (build_item_board(family), *family.boards)]
    roll_ups = [*boards, costs, drift, report]
    jobs = family_jobs(family, stages, roll_ups)
    checks = [asset for asset in assets if isinstance(asset, dg.AssetChecksDefinition)]
    return FamilyAssets(
        [files, *(asset for asset in assets if asset not in checks), *boards, costs, drift],
        [*checks, *drift_checks],
        jobs.pipeline,
        [jobs.pipeline, jobs.roll_ups],
        [jobs.boards_after_run],
        [_build_schedule(family, stages)],
    )


def build_item_board(family: Family) -> FamilyBoard:
    """Return the board of an assembled family, with its part of `comparisons`."""
    schema = family.all_tables[family.board].schema

    def make(connection: Any, _: Any) -> Tables:
        return compute_item_boards(connection, family.name, family.scores_table, family.space, family.scores, schema)

    columns = (*family.scores.board, "rank", "model", "score", "score_low", "score_high", "n_items", "note")
    return FamilyBoard(
        family.board,
        f"""Models ranked by their mean score over items: one row per cut, metric and model variant, with a 95 % interval by whole
    {format_plural(family.scores.cluster_noun)}. The cut `{OVERALL}` is over all items, the cut `part` over each {family.part}.

    Of each {family.part} the latest snapshot counts that scored at least half of its items. A model is ranked that has a score for nine
    tenths of the items. It also writes the family's part of `comparisons`: every two models, paired by item.""",
        make,
        reads=(family.scores_table,),
        previews={"board": Preview(family.board, columns, cut=OVERALL)},
    )


def _build_schedule(family: Family, stages: tuple[Stage, ...]) -> dg.ScheduleDefinition:
    """Return the schedule of the stages after the first, for the panel's partitions that are loaded."""

    def plan(context: dg.ScheduleEvaluationContext, store: Store, settings: PartSettings) -> NightPlan:
        load_store_models(store).resolve(settings.models)
        known_keys = list_partitions(context.instance, family.space)
        parts = filter_by_patterns(known_keys, settings.parts, f"{family.name}.parts")
        keys = [
            key
            for key in parts
            if len(store.warehouse.read_or_empty(family.first_table, columns=[family.scores.item], **family.space.levels(key)))
        ]
        return NightPlan(known_keys, parts, keys, run_config(settings, {stage.name: stage.settings for stage in stages[1:]}))

    return build_night_schedule(
        family,
        plan,
        name=f"nightly_{family.name}",
        job=f"{family.name}_pipeline",
        time=(4, 0),
        description=(
            f"requests the {format_plural(family.part)} that the panel's section `{family.name}` (DTEF_PANEL) names "
            "again, in a snapshot named after the date."
        ),
        label=family.name,
        skip_reason=f"no {family.part} of the panel has been added yet: `dtef {family.name} add PATH` does",
    )
