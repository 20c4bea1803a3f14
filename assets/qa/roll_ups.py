"""The roll-ups of the qa family, its jobs, and the asset `qa_anchors`, which repeats judgements of stored answers."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.engine.asking import asking
from assets.engine.family_assets import build_board_asset, family_jobs, require_scored, stage_keys
from assets.engine.settings_config import takes_settings
from assets.engine.site_report import report
from assets.qa.stages import QA_GROUP, QA_JUDGEMENTS_STAGE, QA_STAGES, judge_limits, resolve_run_arbiter
from assets.qa.suite_catalog import load_known_suites
from assets.stage.anchor_results import build_anchor_result, store_anchor_rows
from assets.stage.checks import asset_check, verdict
from assets.stage.family_costs import build_costs_asset
from assets.stage.family_drift import FamilyDrift, build_drift_assets, load_drift_section
from assets.stage.partitions import load_store_models, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import publish_tables
from dtef_pipeline.asking.episodes import play, split_into_windows
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import FamilyBoard, Preview
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.qa_boards import QA_BOARDS
from dtef_pipeline.qa.score_drift import (
    ANCHORS_CHOSEN_FROM,
    QA_WATCHED,
    add_answers,
    build_qa_anchor_rows,
    iterate_anchor_looks,
    load_judged_answers,
)
from dtef_pipeline.qa.score_validity import QA_VALIDITY_READS
from dtef_pipeline.qa.score_validity import qa_validity as validity_of_scores
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QaSettings
from dtef_pipeline.qa.suites import QA_BOARD_READS, build_qa_boards
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


QA_FAMILY = FAMILY_BY_NAME["qa"]
_BOARD_SHOWN = (
    *("suite", "condition", "metric", "rank", "model", "score", "score_low", "score_high", "macro_score", "n_items"),
    "note",
)


class QaBoardConfig(dg.Config):
    """Configuration of the board: the file that says which suites are public."""

    suites: str | None = Field(
        default=None, description="YAML file with your suites, in addition to the shipped data/suites.yaml."
    )


@dg.asset(deps=[dg.AssetKey("qa_scores")], **{**roll_up("qa_board", code_version="4"), **QA_GROUP})
def qa_board(config: QaBoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score in each suite: one row per suite, condition, metric, `measured_by` and model variant.

    Each part counts with its latest snapshot in which at least half of its items have a score. `score` is the mean over items,
    `macro_score` the mean over subjects or transcripts; a model needs scores on nine tenths of the items to be ranked. The column `cut`
    separates this board (`overall`) from those of each part, and of each transcript or subject. The same step writes `qa_pass_at_k`
    (programs) and the family's rows of `comparisons` (every pair of models, paired by item).
    """
    require_scored(store, QA_FAMILY)
    exposure = load_known_suites(config.suites).exposure
    boards = store.warehouse.query(lambda connection: build_qa_boards(connection, exposure=exposure), only=QA_BOARD_READS)
    overall = boards["qa_board"].filter(pc.equal(boards["qa_board"]["cut"], "overall"))
    return publish_tables(store, boards, family="qa", board=markdown(overall, _BOARD_SHOWN, n=30))


qa_costs = build_costs_asset(QA_FAMILY, ["qa_scores"])
qa_validity = build_board_asset(
    QA_FAMILY,
    FamilyBoard(
        "qa_validity",
        """Validity of the scores: one row per suite, condition, model variant, check, metric and `measured_by`.

        `position_bias`: how much a model's mean changes with the order of the options. The other checks are on judges: how often the arbiter
        and the number in the answer disagree, how many judgements are by a model of the same maker, how many failed, and whether longer
        answers get better scores. `is_suspect` marks values that need a look.""",
        lambda connection, _: {"qa_validity": validity_of_scores(connection)},
        reads=QA_VALIDITY_READS,
        previews={"validity": Preview.from_board(next(board for board in QA_BOARDS if board.name == "validity"))},
        metadata=lambda tables, _: {"n_suspect": pc.sum(tables["qa_validity"]["is_suspect"]).as_py() or 0},
    ),
)


@asset_check(asset=qa_validity)
def qa_scores_are_valid(store: Store) -> dg.AssetCheckResult:
    """Warns of a model or judge whose scores may depend on something other than the answer; see `qa_validity`."""
    rows = store.warehouse.read("qa_validity").to_pylist()
    offenders = [f"{row['check']} {row['suite']} {row['model']}: {row['value']:.3f}" for row in rows if row["is_suspect"]]
    return verdict(offenders, n_checked=len(rows), severity=dg.AssetCheckSeverity.WARN)


qa_drift, qa_has_no_drift = build_drift_assets(
    FamilyDrift(
        subject=QA_WATCHED,
        code_version="6",
        details="If the judge was shown stored answers again (`qa_anchors`), `net_shift` is the shift of a judged score without the "
        "judge's own shift, so that a drift of the judge does not count as drift of the model.",
        scores=("qa_scores", "part", "dtef qa run"),
    )
)


@asset_check(asset=qa_drift)
def qa_judge_is_stable(store: Store) -> dg.AssetCheckResult:
    """Warns of a judge whose scores of the same stored answers changed, on its own or together with other judges."""
    rows = store.warehouse.read_or_empty("judge_drift", family="qa").to_pylist()
    offenders = [
        f"{row['judge']}, {row['evaluator']}, {row['verdict']} since {row['first_snapshot']}: {row['shift']:+.4f}"
        for row in rows
        if row["first_snapshot"] is not None
    ]
    return verdict(offenders, n_checked=len(rows), severity=dg.AssetCheckSeverity.WARN)


QA_ROLL_UPS = [qa_board, qa_costs, qa_validity, qa_drift, report]
qa_pipeline, qa_roll_ups, qa_boards_after_run = family_jobs(QA_FAMILY, QA_STAGES, QA_ROLL_UPS)
qa_nightly = dg.define_asset_job(
    "qa_nightly",
    selection=dg.AssetSelection.assets(*stage_keys(QA_STAGES), qa_anchors.key),
    description="Job of the schedule `qa_nightly`: runs the stages for the panel's parts, and shows the judge stored answers again.",
)
qa_anchors_rerun = dg.define_asset_job(
    "qa_anchors_rerun",
    selection=dg.AssetSelection.assets(qa_anchors),
    description="Shows the judge stored answers again in a snapshot, so that its drift can be distinguished from drift of the models.",
)
QA_JOBS = [qa_pipeline, qa_nightly, qa_roll_ups, qa_anchors_rerun]
QA_SENSORS = [qa_boards_after_run]
