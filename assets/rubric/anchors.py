"""Judges watched on stored responses: `rubric_anchors`."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.judgements import JUDGED_AT_A_TIME
from assets.rubric.responses import rubric_responses
from assets.stage.asked import RolesConfig, asking, models_of
from assets.stage.judged_again import judged_result, keep_judged
from assets.stage.panel_drift import drift_section
from assets.stage.partitions import roll_up
from assets.stage.resources import Store
from dtef_pipeline.asking.episodes import in_windows, play
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.anchor_rows import (
    NOTHING_TO_JUDGE_AGAIN,
    anchor_judgings,
    anchor_rows,
    judge_drift_rows,
    more_anchors,
)
from dtef_pipeline.rubric.corrected_rows import board_runs, label_material
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_ANCHORS
from dtef_pipeline.statistics.drawing import SEED

_ANCHORS_READ = ("rubric_responses", "rubric_criteria", "rubric_prompts", "rubric_scores", "rubric_runs")


class AnchorsConfig(RolesConfig):
    """Which judges are watched, on how many responses."""

    judges: list[str] = Field(
        default=[],
        description="APPROACH=MODEL each; none: those that the anchor's blueprint names, else the models of the collection `judges`.",
    )
    scale: int = Field(default=USUAL_SCALE, description="Classes that judges choose from: 5, or upstream's 10.")
    n: int = Field(default=200, ge=1, description="How many pairs of a response and a criterion are judged again.")
    seed: int = Field(default=SEED, ge=0, description="Seed of the choice of those that are new.")


@dg.asset(
    deps=[rubric_responses],
    **{**roll_up("rubric_anchors", code_version="2", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_anchors(context: dg.AssetExecutionContext, config: AnchorsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What judges say of stored responses when they are shown them again: one row per snapshot, anchor and judge.

    An anchor is a response and a criterion that stay as they are (`rubric_anchor_items`), so whatever moves from night to night is the judge.
    Each snapshot asks afresh; what was asked in it is never asked twice. `dtef anchors --family rubric --show` tells which judges have moved.
    """
    kept = _anchors(store, config)
    judges = _judges(store, config, pc.unique(kept["blueprint"]).to_pylist())
    episodes = anchor_judgings(kept, judges, config.snapshot)
    specs = list({one.model.variant: one.model for some in judges.values() for one in some}.values())
    tables = [RUBRIC_ANCHORS.empty_table()]
    with asking(context, store, config, specs, Counter(one.judge.model.name for one in episodes)) as ask:
        for some in in_windows(episodes, JUDGED_AT_A_TIME):
            tables.append(anchor_rows(some, play(some, ask, store.responses.responses)))
    rows = pa.concat_tables(tables)
    keep_judged(store, "rubric_anchors", rows, config.snapshot)
    options = drift_section(store.settings).options
    moved = judge_drift_rows(store.warehouse.read("rubric_anchors"), options)
    return judged_result(context, store, rows, config.snapshot, len(kept), moved, ["judge"])


def _anchors(store: Store, config: AnchorsConfig) -> pa.Table:
    """The anchors, filled up where there are fewer than were asked for. Raises WarehouseError where there are none."""
    house = store.warehouse
    kept = house.read_or_empty("rubric_anchor_items")
    if len(kept) < config.n and house.values("rubric_scores", "blueprint"):
        material = store.warehouse.query(
            lambda connection: label_material(connection, board_runs(connection)), only=_ANCHORS_READ
        )
        kept = more_anchors(kept, config.n, config.seed, material)
        house.write("rubric_anchor_items", kept)
    if not len(kept):
        raise WarehouseError(NOTHING_TO_JUDGE_AGAIN)
    return kept.slice(0, config.n)


def _judges(store: Store, config: AnchorsConfig, blueprints: Sequence[str]) -> dict[str, tuple[JudgeConfig, ...]]:
    """By blueprint: those of the command, else those that its file names, else the usual ones."""
    heads = store.warehouse.read_or_empty("rubric_blueprints", columns=["blueprint", "judges"]).to_pylist()
    named = {row["blueprint"]: row["judges"] for row in heads}
    models = models_of(store)
    return {one: chosen_judges(config.judges, named.get(one) or [], models, config.scale) for one in blueprints}
