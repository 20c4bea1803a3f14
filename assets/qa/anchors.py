"""The asset `qa_anchors`: repeats judgements of stored answers."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.engine.asking import asking
from assets.engine.settings_config import takes_settings
from assets.qa.files import QA_GROUP
from assets.qa.stages import QA_JUDGEMENTS_STAGE, judge_limits, resolve_run_arbiter
from assets.stage.anchor_results import build_anchor_result, store_anchor_rows
from assets.stage.panel_drift import load_drift_section
from assets.stage.partitions import roll_up
from assets.stage.request_batches import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.asking.episodes import play, split_into_windows
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.score_drift import (
    ANCHORS_CHOSEN_FROM,
    QA_WATCHED,
    add_answers,
    build_qa_anchor_rows,
    iterate_anchor_looks,
    load_judged_answers,
)
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QaSettings
from dtef_pipeline.qa.tables import QA_ANCHORS


@dg.asset(
    name="qa_anchors",
    deps=[dg.AssetKey("qa_judgements")],
    **{**roll_up("qa_anchors", code_version="2", kinds={"litellm", "parquet"}), **QA_GROUP},
)
@takes_settings(QaSettings, "qa_anchors", QA_ANCHOR_SETTINGS)
def qa_anchors(context: dg.AssetExecutionContext, settings: QaSettings, store: Store) -> dg.MaterializeResult[Any]:
    """Repeated judgements of stored answers: one row per snapshot, anchor and evaluator.

    An anchor is a judged answer that never changes (`qa_anchor_items`, chosen once, spread over the scores), so any change between snapshots
    is due to the judge. Each snapshot requests every judgement once. `judge_drift` lists the judges that changed.
    """
    arbiter = resolve_run_arbiter(load_store_models(store), settings)
    anchors = _fill_anchors(store, settings) if arbiter else pa.table({})
    rows = QA_ANCHORS.empty_table()
    if arbiter is None or not len(anchors):
        context.log.info("nothing to judge again: judging is off, or no answer has a judged score yet")
    else:
        rows = _judge_anchors(context, store, settings, arbiter, anchors)
    store_anchor_rows(store, "qa_anchors", rows, settings.snapshot)
    shifts = judge_drift(QA_WATCHED, store.warehouse.read_or_empty("qa_anchors"), load_drift_section(store.settings))
    return build_anchor_result(context, store, rows, settings.snapshot, len(anchors), shifts)


def _fill_anchors(store: Store, settings: QaSettings) -> pa.Table:
    """Return the anchors, filled up to the requested number."""
    house = store.warehouse
    anchors = house.read_or_empty("qa_anchor_items")
    if len(anchors) < settings.anchors and house.tables(["qa_judgements"]):
        pool = store.warehouse.query(load_judged_answers, only=ANCHORS_CHOSEN_FROM)
        anchors = add_answers(anchors, settings.anchors, settings.anchor_seed, pool)
        house.write("qa_anchor_items", anchors)
    return anchors.slice(0, settings.anchors)


def _judge_anchors(
    context: dg.AssetExecutionContext, store: Store, settings: QaSettings, arbiter: Arbiter, rows: pa.Table
) -> pa.Table:
    tables = [QA_ANCHORS.empty_table()]
    expected = {arbiter.model.name: len(rows) * len(arbiter.evaluators)}
    with asking(context, store, settings, [arbiter.model], expected, judge_limits(store, settings)) as ask:
        for looks in split_into_windows(iterate_anchor_looks(rows, arbiter, settings.snapshot), QA_JUDGEMENTS_STAGE.at_a_time):
            tables.append(build_qa_anchor_rows(settings.snapshot, looks, play(looks, ask, store.responses.responses)))
    return pa.concat_tables(tables)
