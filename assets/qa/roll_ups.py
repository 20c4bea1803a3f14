"""The roll-ups of the qa family, its jobs, its nightly schedule, and the asset `qa_anchors`, which repeats judgements of stored answers."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow.compute as pc
from pydantic import Field

from assets.engine.anchors import build_anchor_asset
from assets.engine.family_assets import build_board_asset, family_jobs, stage_keys
from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.engine.site_report import report
from assets.qa.part_checks import load_known_suites, require_server
from assets.qa.stages import QA_STAGES, judge_limits, resolve_run_arbiter
from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import build_drift_assets
from assets.stage.partitions import load_store_models, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import build_costs_asset, publish_tables, require_scored
from dtef_pipeline.drift.judge_verdicts import AnchorJudging
from dtef_pipeline.drift.subject import Row
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import FamilyBoard, Preview
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.qa.prompt_rows import filter_faults
from dtef_pipeline.qa.qa_boards import QA_BOARDS
from dtef_pipeline.qa.score_drift import QA_WATCHED, iterate_anchor_judgings
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QA_PANEL_SECTION, QA_STAGE_SETTINGS, QaSettings, select_panel_parts
from dtef_pipeline.qa.suites import QA_BOARD_READS, QA_VALIDITY_READS, build_qa_boards
from dtef_pipeline.qa.suites import qa_validity as validity_of_scores
from dtef_pipeline.qa.tables import QA_SPACE


def _list_anchor_judgings(store: Store, settings: QaSettings, anchors: Sequence[Row]) -> Iterator[AnchorJudging]:
    arbiter = resolve_run_arbiter(load_store_models(store), settings)
    return iterate_anchor_judgings(anchors, arbiter, settings.snapshot) if arbiter else iter(())


qa_anchors = build_anchor_asset(
    QA_WATCHED, QaSettings, QA_ANCHOR_SETTINGS, _list_anchor_judgings, judge_limits, dep="qa_judgements"
)
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


@dg.asset(deps=[dg.AssetKey("qa_scores")], **roll_up("qa_board", code_version="4", group="qa"))
def qa_board(config: QaBoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score in each suite: one row per suite, condition, metric, `measured_by` and model variant.

    Each part counts with its latest snapshot in which at least half of its items have a score. `score` is the mean over items,
    `macro_score` the mean over subjects or transcripts; a model needs scores on 90 % of the items to be ranked. The column `cut`
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
        answers get better scores. `is_suspect` marks values to check.""",
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
    QA_FAMILY,
    QA_WATCHED,
    code_version="6",
    details="If the judge was shown anchors again (`qa_anchors`), `net_shift` is the shift of a judged score without the judge's own "
    "shift, so that a drift of the judge does not count as drift of the model.",
)


@asset_check(asset=qa_drift)
def qa_judge_is_stable(store: Store) -> dg.AssetCheckResult:
    """Warns of a judge whose scores of the same anchors changed, on its own or together with other judges."""
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
    description="Job of the schedule `qa_nightly`: runs the stages for the panel's parts, and rejudges the anchors (stored responses).",
)
qa_anchors_rerun = dg.define_asset_job(
    "qa_anchors_rerun",
    selection=dg.AssetSelection.assets(qa_anchors),
    description="Shows the judge anchors (stored answers) again in a snapshot, so that its drift can be distinguished from drift of the models.",
)


def plan_questions(
    context: dg.ScheduleEvaluationContext, store: Store, panel: QaSettings, known_parts: Sequence[str]
) -> NightPlan:
    """Plan the stages from the prompts on. Parts that were added but never materialized are left out and reported."""
    parts = select_panel_parts(panel, known_parts)
    keys = [key for key in parts if len(store.warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))]
    if keys:
        faults = filter_faults(
            keys,
            panel.ask_settings,
            lambda key, columns: store.warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
            given_as=f"{QA_PANEL_SECTION}.filter",
        )
        for key, text in faults.items():
            context.log.warning(f"{key}: {text}")
    return NightPlan(parts, keys, _config(panel, store) if keys else {})


def _config(settings: QaSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Return the configuration by stage. Raises ConfigError for an unknown model, judge or server, before any request."""
    models = load_store_models(store)
    models.resolve(settings.models)
    require_server(settings.retriever, store.settings)
    stages = {name: names for name, names in QA_STAGE_SETTINGS.items() if name != "qa_items"}
    if settings.anchors and resolve_run_arbiter(models, settings) is not None:
        stages["qa_anchors"] = QA_ANCHOR_SETTINGS
    return run_config(settings, stages)


qa_nightly_schedule = build_night_schedule(
    QA_FAMILY,
    plan_questions,
    time=(3, 0),
    description="runs and judges again the parts of suites that the section `qa` of the panel (DTEF_PANEL) names, in a snapshot named "
    "after the date. The same run rejudges the anchors (stored responses).",
    skip_reason="no part of the panel has been added yet; run `dtef qa add SUITE PATH`",
    names_any=lambda panel: panel.names_parts,
    named=" that names suites or parts",
)
