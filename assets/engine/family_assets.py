"""All Dagster definitions of an assembled family: files, stages, checks, roll-ups, jobs, a sensor, and its nightly schedule."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, NamedTuple

import dagster as dg
import pyarrow.compute as pc

from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.engine.roll_up_names import REPORT
from assets.engine.site_report import report
from assets.engine.stage_assets import all_stages, build_file_source, stage_assets
from assets.stage.boards_sensor import boards_after_run
from assets.stage.family_drift import build_drift_assets
from assets.stage.partitions import load_store_models, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import build_costs_asset, publish_tables, require_scored
from dtef_pipeline.family.item_scores import OVERALL, compute_item_boards
from dtef_pipeline.family.item_site import item_subject
from dtef_pipeline.family.record import Family, FamilyBoard, Preview
from dtef_pipeline.family.run_settings import PartSettings, run_config
from dtef_pipeline.family.stage import Stage, Tables
from dtef_pipeline.text.name_matching import filter_by_patterns
from dtef_pipeline.text.number_words import format_plural


def build_board_asset(family: Family, board: FamilyBoard) -> dg.AssetsDefinition:
    """Return a board's asset, which publishes its tables."""

    def compute(store: Store) -> dg.MaterializeResult[Any]:
        require_scored(store, family)
        tables = store.warehouse.query(lambda connection: board.make(connection, store), only=board.reads)
        previews = {name: _show_preview(tables, preview) for name, preview in board.previews.items()}
        return publish_tables(store, tables, family=family.name, **board.metadata(tables, store), **previews)

    deps = [dg.AssetKey(name) for name in board.after or (family.scores_table,)]
    options = roll_up(board.table or board.name, code_version=board.version, group=family.name)
    asset: dg.AssetsDefinition = dg.asset(name=board.name, deps=deps, description=cleandoc(board.description), **options)(
        compute
    )
    return asset


def _show_preview(tables: Tables, preview: Preview) -> Any:
    rows = tables[preview.table]
    selection = rows.filter(pc.equal(rows["cut"], preview.cut)) if preview.cut else rows
    return markdown(selection, [name for name in preview.columns if name in rows.column_names], n=preview.most)


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
        description=f"All stages for the chosen {format_plural(part)}, in one run. Roll-ups are a run of their own: `{name}_roll_ups`.",
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
    description = f"Brings the roll-ups of the {name} family up to date when a {part} was scored, by any run."
    return FamilyJobs(pipeline, rolling, boards_after_run(f"{name}_boards_after_run", boards, rolling, scores, description))


def stage_keys(stages: Sequence[Stage]) -> list[dg.AssetKey]:
    """Return the asset keys of these stages."""
    return [dg.AssetKey(stage.name) for stage in stages]


def assemble(family: Family) -> dg.Definitions:
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
    costs = build_costs_asset(family, [stage.name for stage in stages if stage.asks])
    drift, drift_check = build_drift_assets(family, item_subject(family), code_version="1")
    boards = [build_board_asset(family, board) for board in (build_item_board(family), *family.boards)]
    roll_ups = [*boards, costs, drift, report]
    jobs = family_jobs(family, stages, roll_ups)
    checks = [asset for asset in assets if isinstance(asset, dg.AssetChecksDefinition)]
    return dg.Definitions(
        assets=[files, *(asset for asset in assets if asset not in checks), *boards, costs, drift],
        asset_checks=[*checks, drift_check],
        jobs=[jobs.pipeline, jobs.roll_ups],
        sensors=[jobs.boards_after_run],
        schedules=[_build_schedule(family, stages)],
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

    For each {family.part}, the latest snapshot with scores for at least half of its items counts. A model is ranked if it has scores for
    90 % of the items. The asset also writes the family's rows of `comparisons`: every two models, paired by item.""",
        make,
        reads=(family.scores_table,),
        previews={"board": Preview(family.board, columns, cut=OVERALL)},
    )


def _build_schedule(family: Family, stages: tuple[Stage, ...]) -> dg.ScheduleDefinition:
    """Return the schedule of the stages after the first, for the panel's partitions that are loaded."""

    def plan(_: dg.ScheduleEvaluationContext, store: Store, settings: PartSettings, known_keys: Sequence[str]) -> NightPlan:
        load_store_models(store).resolve(settings.models)
        parts = filter_by_patterns(known_keys, settings.parts, f"{family.name}.parts")
        keys = [
            key
            for key in parts
            if len(store.warehouse.read_or_empty(family.first_table, columns=[family.scores.item], **family.space.levels(key)))
        ]
        return NightPlan(parts, keys, run_config(settings, {stage.name: stage.settings for stage in stages[1:]}))

    return build_night_schedule(
        family,
        plan,
        job=f"{family.name}_pipeline",
        time=(4, 0),
        description=(
            f"requests the {format_plural(family.part)} that the panel's section `{family.name}` (DTEF_PANEL) names "
            "again, in a snapshot named after the date."
        ),
        skip_reason=f"no {family.part} of the panel has been added yet: `dtef {family.name} add PATH` does",
    )
