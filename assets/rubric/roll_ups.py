"""The roll-ups of the rubric family, its jobs, its nightly schedule, and the drift of its judges on stored responses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import duckdb
import pyarrow.compute as pc

from assets.engine.anchors import build_anchor_asset
from assets.engine.family_assets import build_board_asset, family_jobs, stage_keys
from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.engine.settings_config import load_family_panel
from assets.engine.site_report import report
from assets.rubric.stages import RUBRIC_STAGES
from assets.stage.family_drift import build_drift_assets
from assets.stage.partitions import load_store_models, markdown
from assets.stage.resources import Store
from assets.stage.roll_up import build_costs_asset
from dtef_pipeline.drift.judge_verdicts import AnchorJudging
from dtef_pipeline.drift.subject import Row
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import FamilyBoard, Preview
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.family.stage import Tables
from dtef_pipeline.rubric.board import BOARD_READS, build_comparisons_table
from dtef_pipeline.rubric.board import rubric_board as board_of_all
from dtef_pipeline.rubric.episodes import choose_judges
from dtef_pipeline.rubric.label_corrections import (
    CORRECTED_READS,
    build_corrected_tables,
)
from dtef_pipeline.rubric.rubric_boards import RUBRIC_BOARDS
from dtef_pipeline.rubric.rubric_drift import WATCHED, list_anchor_judgings
from dtef_pipeline.rubric.rubric_roll_ups import (
    CHAMPIONS_READ,
    JUDGED_READ,
    build_agreement_tables,
    build_champions_table,
    build_validity_tables,
)
from dtef_pipeline.rubric.settings import (
    RUBRIC_ANCHOR_SETTINGS,
    RUBRIC_PANEL_SECTION,
    RUBRIC_STAGE_SETTINGS,
    RubricSettings,
    select_panel_blueprints,
)
from dtef_pipeline.text.number_words import format_count


def _list_anchor_judgings(store: Store, settings: RubricSettings, anchors: Sequence[Row]) -> Iterator[AnchorJudging]:
    """Yield the judgements by the judges of the settings, else of the blueprint's file, else the default ones."""
    heads = store.warehouse.read_or_empty("rubric_blueprints", columns=["blueprint", "judges"]).to_pylist()
    named = {row["blueprint"]: row["judges"] for row in heads}
    models = load_store_models(store)
    judges = {
        key: choose_judges(settings.judges, named.get(key) or [], models, settings.scale)
        for key in {row["partition"] for row in anchors}
    }
    return list_anchor_judgings(anchors, judges, settings.snapshot)


rubric_anchors = build_anchor_asset(
    WATCHED, RubricSettings, RUBRIC_ANCHOR_SETTINGS, _list_anchor_judgings, dep="rubric_responses"
)
RUBRIC_FAMILY = FAMILY_BY_NAME["rubric"]
_BOARDS_SHOWN = {board.name: board for board in RUBRIC_BOARDS}
_OF_JUDGED = ("rubric_judgements", "rubric_scores")

rubric_board = build_board_asset(
    RUBRIC_FAMILY,
    FamilyBoard(
        "rubric_board",
        """Models ranked by their mean hybrid score over the latest run of every blueprint, each blueprint once.

        The column `cut` is `overall` for this board; other values are the boards by tag, blueprint, prompt and criterion.

        A rank needs scores in 10 blueprints; a model with fewer is listed without one. Intervals are for other blueprints of this kind.
        Blueprints with the tag `test` are only on their own boards. The asset also writes the family's rows of `comparisons` (any two
        models).""",
        lambda connection, _: {"rubric_board": board_of_all(connection), "comparisons": build_comparisons_table(connection)},
        reads=BOARD_READS,
        previews={"board": Preview.from_board(_BOARDS_SHOWN["overall"], cut="overall")},
        version="3",
        metadata=lambda tables, _: {
            "rubric_board_rows": pc.sum(pc.equal(tables["rubric_board"]["cut"], "overall")).as_py() or 0
        },
    ),
)


def _compute_champions(connection: duckdb.DuckDBPyConnection, store: Store) -> Tables:
    panel = load_family_panel(store.settings, RUBRIC_PANEL_SECTION, RubricSettings) or RubricSettings()
    return {"rubric_champions": build_champions_table(connection, consistency=panel.consistent_champions)}


def _describe_champions(tables: Tables, store: Store) -> Mapping[str, Any]:
    rows = tables["rubric_champions"]
    count = "SELECT count(DISTINCT blueprint) FROM rubric_grades WHERE grade IS NOT NULL"
    grades = store.warehouse.query(lambda connection: connection.execute(count).fetchall()[0][0], only=["rubric_grades"])
    columns = ["dimension", "model", "mean", "n_blueprints", "n_steady", "n_latest"]
    total = format_count(len(store.warehouse.values("rubric_scores", "blueprint")), "blueprint")
    best = rows.filter(pc.equal(rows["champion"], True))
    return {"champions": markdown(best, columns, n=13), "graded": f"{grades:,} of {total}"}


rubric_champions = build_board_asset(
    RUBRIC_FAMILY,
    FamilyBoard(
        "rubric_champions",
        """The best models of each dimension that analysts grade: one row per dimension and model that is graded in it, best first.

        The grades are those of the latest graded snapshot of each blueprint, averaged over analysts; each blueprint counts once. A model is
        eligible with 5 blueprints or more. Blueprints with the tag `test` are left out. The panel's key `consistent_champions` requires
        steady grades.""",
        _compute_champions,
        reads=CHAMPIONS_READ,
        after=("rubric_summaries",),
        metadata=_describe_champions,
    ),
)
rubric_agreement = build_board_asset(
    RUBRIC_FAMILY,
    FamilyBoard(
        "rubric_agreement",
        """How far judges agree: one row per cut (overall, blueprint, pair of judges, kind of criterion, language) and its value.

        Krippendorff's alpha of the classes in the latest run of each blueprint, with an interval by prompts: reliable from 0.8, tentative
        from 0.667. The asset also writes `rubric_disagreed`, the criteria on which the judges of one response differ by more than 0.3.""",
        lambda connection, _: build_agreement_tables(connection),
        reads=JUDGED_READ,
        previews={
            "agreement": Preview.from_board(_BOARDS_SHOWN["agreement"]),
            "disagreed": Preview("rubric_disagreed", ("blueprint", "prompt", "mean_sd", "n_responses", "text"), 10),
        },
        version="2",
        after=_OF_JUDGED,
    ),
)
rubric_validity = build_board_asset(
    RUBRIC_FAMILY,
    FamilyBoard(
        "rubric_validity",
        """Whether judges favour models of their own maker: one row for all judges together, then one per judge and model of one maker.

        `gamma` is how much higher a judge scores its own maker's responses than the other judges score the same ones. The table is
        `rubric_self_preference`. The asset also writes `rubric_judges` (outcomes and cost of each judge's calls, each call once). Both
        tables use the latest run of each blueprint.""",
        lambda connection, store: build_validity_tables(connection, store.responses.responses),
        reads=JUDGED_READ,
        previews={
            "self_preference": Preview.from_board(_BOARDS_SHOWN["self-preference"], 20),
            "judges": Preview.from_board(_BOARDS_SHOWN["judges"], 20),
        },
        version="2",
        after=_OF_JUDGED,
        table="rubric_self_preference",
    ),
)


def _compute_corrected_tables(connection: duckdb.DuckDBPyConnection, store: Store) -> Tables:
    labels, draws = (store.warehouse.read_or_empty(name).to_pandas() for name in ("rubric_labels", "rubric_label_draws"))
    return build_corrected_tables(connection, labels, draws)


rubric_corrected = build_board_asset(
    RUBRIC_FAMILY,
    FamilyBoard(
        "rubric_corrected",
        """Scores corrected by people's labels of a few drawn prompts: one row per model over all blueprints, then one per blueprint and model.

        `corrected` estimates the score on the board if people had decided every point that judges decide. Its interval treats the prompts as
        a sample of their kind; `same_prompts_low` to `same_prompts_high` is the interval for these prompts only. The asset also writes
        `rubric_known_classes`, how often each judge agrees with people. Both are empty until labels are imported (`dtef import labels`). The
        asset makes no requests.""",
        _compute_corrected_tables,
        reads=CORRECTED_READS,
        previews={
            "corrected": Preview.from_board(_BOARDS_SHOWN["corrected"]),
            "known_classes": Preview(
                "rubric_known_classes", ("judge", "human_class", "n", "same_class", "within_one_class", "bias", "note")
            ),
        },
        metadata=lambda tables, store: {"labels": len(store.warehouse.read_or_empty("rubric_labels"))},
    ),
)
rubric_costs = build_costs_asset(RUBRIC_FAMILY, ["rubric_responses", "rubric_judgements", "rubric_summaries"])
rubric_drift, rubric_has_no_drift = build_drift_assets(
    RUBRIC_FAMILY,
    WATCHED,
    code_version="6",
    details="If judges judged anchors again (`rubric_anchors`), `net_shift` is a model's shift minus theirs.",
)
RUBRIC_ROLL_UPS = [
    rubric_board,
    rubric_corrected,
    rubric_champions,
    rubric_agreement,
    rubric_validity,
    rubric_drift,
    rubric_costs,
    report,
]
rubric_pipeline, rubric_roll_ups, rubric_boards_after_run = family_jobs(RUBRIC_FAMILY, RUBRIC_STAGES, RUBRIC_ROLL_UPS)
rubric_nightly = dg.define_asset_job(
    "rubric_nightly",
    selection=dg.AssetSelection.assets(*stage_keys(RUBRIC_STAGES), rubric_anchors.key),
    description="The schedule `rubric_nightly`: the stages for the panel's blueprints, and repeated judgements of anchors.",
)
rubric_anchors_rerun = dg.define_asset_job(
    "rubric_anchors_rerun",
    selection=dg.AssetSelection.assets(rubric_anchors),
    description="Judges judge stored responses again in a snapshot, which separates their drift from that of the models.",
)


def plan_rubrics(
    context: dg.ScheduleEvaluationContext, store: Store, panel: RubricSettings, known_keys: Sequence[str]
) -> NightPlan:
    """Plan the stages from the responses on, leaving out and naming blueprints that were never materialized."""
    selection = select_panel_blueprints(panel, known_keys)
    stored_keys = set(store.warehouse.values("rubric_blueprints", "blueprint"))
    keys = [key for key in selection if key in stored_keys]
    return NightPlan(selection, keys, _config(context, panel, store) if keys else {})


def _config(context: dg.ScheduleEvaluationContext, settings: RubricSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Return the configuration by stage. Anchors are scored responses, so the first nightly run has none."""
    first = [] if settings.extract_points else ["rubric_blueprints"]
    stages = {name: names for name, names in RUBRIC_STAGE_SETTINGS.items() if name not in first}
    if settings.anchors and store.warehouse.values("rubric_scores", "blueprint"):
        stages["rubric_anchors"] = RUBRIC_ANCHOR_SETTINGS
    elif settings.anchors:
        context.log.info("no scored response yet: judges get anchors from the next run on")
    return run_config(settings, stages)


rubric_nightly_schedule = build_night_schedule(
    RUBRIC_FAMILY,
    plan_rubrics,
    time=(2, 30),
    description="the blueprints of the panel's section `rubric` (DTEF_PANEL), in a snapshot named after the date. If the panel has "
    "`anchors`, judges judge stored responses again in the same run.",
    skip_reason="no blueprint of the panel has been added yet: add it with `dtef rubric add PATH`",
)
