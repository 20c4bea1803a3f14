"""The drift of judges on stored responses: `rubric_anchors`."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.asking import asking
from assets.engine.settings_config import takes_settings
from assets.rubric.files import RUBRIC_GROUP
from assets.stage.anchor_results import build_anchor_result, store_anchor_rows
from assets.stage.panel_drift import load_drift_section
from assets.stage.partitions import roll_up
from assets.stage.request_batches import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.asking.episodes import play, split_into_windows
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.family.stage import Limits
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.judge_requests import choose_judges
from dtef_pipeline.rubric.labels.label_corrections import load_board_runs, load_label_material
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_ANCHORS
from dtef_pipeline.rubric.rubric_drift import (
    NOTHING_TO_JUDGE_AGAIN,
    WATCHED,
    add_anchors,
    build_anchor_rows,
    list_anchor_judgings,
)
from dtef_pipeline.rubric.settings import RUBRIC_ANCHOR_SETTINGS, RubricSettings
from dtef_pipeline.rubric.stages import RUBRIC_JUDGEMENTS_STAGE

USUAL_ANCHORS = 200
"""Default number of pairs of a response and a criterion that judges judge again."""
_ANCHORS_READ = ("rubric_responses", "rubric_criteria", "rubric_prompts", "rubric_scores", "rubric_runs")


@dg.asset(
    name="rubric_anchors",
    deps=[dg.AssetKey("rubric_responses")],
    **{**roll_up("rubric_anchors", code_version="2", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
@takes_settings(RubricSettings, "rubric_anchors", RUBRIC_ANCHOR_SETTINGS)
def rubric_anchors(context: dg.AssetExecutionContext, settings: RubricSettings, store: Store) -> dg.MaterializeResult[Any]:
    """Repeated judgements of stored responses: one row per snapshot, anchor and judge.

    An anchor is a response and a criterion that never change (`rubric_anchor_items`), so any change between snapshots is due to the judge.
    Each snapshot requests every judgement once. `dtef anchors --family rubric --results` lists the judges that have changed.
    """
    anchors = _fill_rubric_anchors(store, settings)
    judges = _resolve_judges(store, settings, pc.unique(anchors["blueprint"]).to_pylist())
    episodes = list_anchor_judgings(anchors, judges, settings.snapshot)
    specs = list({judge.model.variant: judge.model for group in judges.values() for judge in group}.values())
    tables = [RUBRIC_ANCHORS.empty_table()]
    expected = Counter(episode.judge.model.name for episode in episodes)
    with asking(context, store, settings, specs, expected, Limits()) as ask:
        for window in split_into_windows(episodes, RUBRIC_JUDGEMENTS_STAGE.at_a_time):
            tables.append(build_anchor_rows(window, play(window, ask, store.responses.responses)))
    rows = pa.concat_tables(tables)
    store_anchor_rows(store, "rubric_anchors", rows, settings.snapshot)
    shifts = judge_drift(WATCHED, store.warehouse.read("rubric_anchors"), load_drift_section(store.settings))
    return build_anchor_result(context, store, rows, settings.snapshot, len(anchors), shifts)


def _fill_rubric_anchors(store: Store, settings: RubricSettings) -> pa.Table:
    """Return the anchors, adding new ones up to the requested number. Raises WarehouseError if there are none."""
    house, limit = store.warehouse, settings.anchors or USUAL_ANCHORS
    anchors = house.read_or_empty("rubric_anchor_items")
    if len(anchors) < limit and house.values("rubric_scores", "blueprint"):
        material = store.warehouse.query(
            lambda connection: load_label_material(connection, load_board_runs(connection)), only=_ANCHORS_READ
        )
        anchors = add_anchors(anchors, limit, settings.anchor_seed, material)
        house.write("rubric_anchor_items", anchors)
    if not len(anchors):
        raise WarehouseError(NOTHING_TO_JUDGE_AGAIN)
    return anchors.slice(0, limit)


def _resolve_judges(store: Store, settings: RubricSettings, blueprints: Sequence[str]) -> dict[str, tuple[JudgeConfig, ...]]:
    """Return the judges by blueprint: of the settings, else of its file, else the default ones."""
    heads = store.warehouse.read_or_empty("rubric_blueprints", columns=["blueprint", "judges"]).to_pylist()
    named = {row["blueprint"]: row["judges"] for row in heads}
    models = load_store_models(store)
    return {key: choose_judges(settings.judges, named.get(key) or [], models, settings.scale) for key in blueprints}
