"""The judge watched on stored answers: `qa_anchors`."""

from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.qa.files import QA_GROUP
from assets.qa.judgements import LOOKS_AT_A_TIME, JudgeConfigured, judging, qa_judgements
from assets.stage.judged_again import judged_result, keep_judged
from assets.stage.panel_drift import drift_section
from assets.stage.partitions import roll_up
from assets.stage.resources import Store
from dtef_pipeline.asking.episodes import in_windows, play
from dtef_pipeline.drift.anchored import judge_drift
from dtef_pipeline.qa.anchored_answers import (
    ANCHORS_CHOSEN_FROM,
    ANCHORS_KEPT,
    anchor_looks,
    judged_answers,
    more_answers,
    qa_anchor_rows,
)
from dtef_pipeline.qa.arbiter import Arbiter
from dtef_pipeline.qa.result_tables import QA_ANCHORS
from dtef_pipeline.qa.watched_scores import QA_WATCHED
from dtef_pipeline.statistics.drawing import SEED


class QaAnchorsConfig(JudgeConfigured):
    """Which judge is watched, on how many answers."""

    n: int = Field(default=ANCHORS_KEPT, ge=1, description="How many judged answers are judged again.")
    seed: int = Field(default=SEED, ge=0, description="Seed of the choice of those that are new.")


@dg.asset(
    deps=[qa_judgements],
    **{**roll_up("qa_anchors", code_version="2", kinds={"litellm", "parquet"}), **QA_GROUP},
)
def qa_anchors(context: dg.AssetExecutionContext, config: QaAnchorsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What the judge says of the same answers when it is shown them again: one row per night, anchor and evaluator.

    An anchor is a judged answer that stays as it is (`qa_anchor_items`, chosen once, spread over the scores), so whatever moves from night to
    night is the judge. Each night asks afresh; what was asked in it is never asked twice. `judge_drift` says which judge has moved.
    """
    arbiter = config.arbiter(store)
    kept = _kept(store, config) if arbiter else pa.table({})
    rows = QA_ANCHORS.empty_table()
    if arbiter is None or not len(kept):
        context.log.info("nothing to judge again: nobody judges, or no answer has a judge's score yet")
    else:
        rows = _judged(context, store, config, arbiter, kept)
    keep_judged(store, "qa_anchors", rows, config.snapshot)
    moved = judge_drift(QA_WATCHED, store.warehouse.read_or_empty("qa_anchors"), drift_section(store.settings))
    return judged_result(context, store, rows, config.snapshot, len(kept), moved)


def _kept(store: Store, config: QaAnchorsConfig) -> pa.Table:
    """The anchors, filled up where there are fewer than were asked for."""
    house = store.warehouse
    kept = house.read_or_empty("qa_anchor_items")
    if len(kept) < config.n and house.tables(["qa_judgements"]):
        pool = store.warehouse.query(judged_answers, only=ANCHORS_CHOSEN_FROM)
        kept = more_answers(kept, config.n, config.seed, pool)
        house.write("qa_anchor_items", kept)
    return kept.slice(0, config.n)


def _judged(
    context: dg.AssetExecutionContext, store: Store, config: QaAnchorsConfig, arbiter: Arbiter, kept: pa.Table
) -> pa.Table:
    tables = [QA_ANCHORS.empty_table()]
    with judging(context, store, config, arbiter, len(kept)) as ask:
        for some in in_windows(anchor_looks(kept, arbiter, config.snapshot), LOOKS_AT_A_TIME):
            tables.append(qa_anchor_rows(config.snapshot, some, play(some, ask, store.responses.responses)))
    return pa.concat_tables(tables)
