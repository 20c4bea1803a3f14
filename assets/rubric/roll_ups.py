"""Roll-ups over all blueprints beside the boards: `rubric_champions`, `rubric_agreement`, `rubric_validity`, `rubric_costs`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.engine.panel import family_panel
from assets.rubric.files import RUBRIC_GROUP
from assets.stage.family_costs import define_costs
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from dtef_pipeline.rubric.board import BOARD_READS
from dtef_pipeline.rubric.board import rubric_board as board_of_all
from dtef_pipeline.rubric.corrected_rows import CORRECTED_READS, corrected_tables
from dtef_pipeline.rubric.rolled_up import (
    CHAMPIONS_READ,
    JUDGED_READ,
    agreement_tables,
    champions_table,
    validity_tables,
)
from dtef_pipeline.rubric.runs_compared import comparisons_table
from dtef_pipeline.rubric.settings import RUBRIC_PANEL_SECTION, RubricSettings
from dtef_pipeline.text.counted import counted

OF_JUDGED = [dg.AssetKey("rubric_judgements"), dg.AssetKey("rubric_scores")]


@dg.asset(deps=[dg.AssetKey("rubric_summaries")], **{**roll_up("rubric_champions", code_version="1"), **RUBRIC_GROUP})
def rubric_champions(store: Store) -> dg.MaterializeResult[Any]:
    """The best models of each dimension that analysts grade: one row per dimension and model that is graded in it, best first.

    The grades of the latest graded snapshot of each blueprint count, several analysts are averaged, and each blueprint counts once. A model
    is eligible from 5 blueprints on. Blueprints with the tag `test` are left out. The panel's key `consistent_champions` asks for steady grades.
    """
    require_scored(store)
    panel = family_panel(store.settings, RUBRIC_PANEL_SECTION, RubricSettings) or RubricSettings()
    consistency = panel.consistent_champions
    rows = store.warehouse.query(lambda connection: champions_table(connection, consistency=consistency), only=CHAMPIONS_READ)
    grades = store.warehouse.query(_graded_blueprints, only=["rubric_grades"])
    best = rows.filter(pa.compute.equal(rows["champion"], True))
    preview = markdown(best, ["dimension", "model", "mean", "n_blueprints", "n_steady", "n_latest"], most=13)
    known = len(store.warehouse.values("rubric_scores", "blueprint"))
    return published(
        store, {"rubric_champions": rows}, champions=preview, graded=f"{grades:,} of {counted(known, 'blueprint')}"
    )


def _graded_blueprints(connection: Any) -> int:
    return int(connection.execute("SELECT count(DISTINCT blueprint) FROM rubric_grades WHERE grade IS NOT NULL").fetchone()[0])


@dg.asset(
    deps=OF_JUDGED,
    **{**roll_up("rubric_agreement", code_version="2"), **RUBRIC_GROUP},
)
def rubric_agreement(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """How far judges agree: one row per cut of the judgements (overall, blueprint, pair of judges, kind of criterion, language) and its value.

    Krippendorff's alpha of the classes in the latest run of each blueprint, with an interval by prompts: from 0.8 on reliable, from 0.667 on
    tentative. Beside it stands `rubric_disagreed`, the criteria on which the judges of one response differ by more than 0.3.
    """
    require_scored(store)
    tables = store.warehouse.query(agreement_tables, only=JUDGED_READ)
    shown = ["cut", "value", "alpha", "low", "high", "reading", "n_units", "n_clusters", "reason"]
    return published(
        store,
        tables,
        agreement=markdown(tables["rubric_agreement"], shown, most=30),
        disagreed=markdown(tables["rubric_disagreed"], ["blueprint", "prompt", "spread", "n_responses", "text"], most=10),
    )


@dg.asset(
    deps=OF_JUDGED,
    **{**roll_up("rubric_self_preference", code_version="2"), **RUBRIC_GROUP},
)
def rubric_validity(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Whether judges favour models of their own maker: one row for all judges together, then one per judge and model of one maker.

    `gamma` is what a judge gives to its own maker's responses beyond what the other judges give to the same ones. The table is called
    `rubric_self_preference`. Beside it stand `rubric_judges` (what became of each judge's calls, and what they cost, each call once) and
    `rubric_variance_shares` (what scores vary by: answers, judges, repeats). All of the latest run of each blueprint.
    """
    require_scored(store)
    tables = store.warehouse.query(lambda connection: validity_tables(connection, store.responses.responses), only=JUDGED_READ)
    return published(
        store,
        tables,
        self_preference=markdown(
            tables["rubric_self_preference"],
            ["judge", "model", "maker", "gamma", "low", "high", "p_adjusted", "flagged", "reason"],
            most=20,
        ),
        judges=markdown(
            tables["rubric_judges"], ["judge", "n", "unreadable", "partial", "mean", "cost_usd", "flagged"], most=20
        ),
        variance=markdown(
            tables["rubric_variance_shares"], ["cut", "value", "answers", "judges", "repeats", "n", "reason"], most=10
        ),
    )


rubric_costs = define_costs("rubric", ["rubric_responses", "rubric_judgements", "rubric_summaries"], "dtef rubric run")


def require_scored(store: Store) -> None:
    """Raises WarehouseError where no blueprint was scored."""
    require_made(store, "rubric_scores", "blueprint", "dtef rubric run")


@dg.asset(deps=[dg.AssetKey("rubric_scores")], **{**roll_up("rubric_board", code_version="3"), **RUBRIC_GROUP})
def rubric_board(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean hybrid score over the latest run of every blueprint, each blueprint once.

    The column `cut` tells this board (`overall`) from those of tags, of each blueprint, prompt and criterion.

    A model is ranked from 10 blueprints on; one with fewer is listed without a rank. Intervals are of other blueprints of this kind. Blueprints
    with the tag `test` are in boards of their own alone. Beside it stands the family's part of `comparisons` (every two models).
    """
    require_scored(store)
    rows = store.warehouse.query(board_of_all, only=BOARD_READS)
    compared = store.warehouse.query(comparisons_table, only=BOARD_READS)
    overall = rows.filter(pa.compute.equal(rows["cut"], "overall"))
    shown = ["rank", "model", "score", "low", "high", "coverage", "similarity", "n_parts", "note"]
    return published(
        store,
        {"rubric_board": rows, "comparisons": compared},
        family="rubric",
        board=markdown(overall, shown, most=30),
        rubric_board_rows=len(overall),
    )


@dg.asset(deps=[dg.AssetKey("rubric_scores")], **{**roll_up("rubric_corrected", code_version="1"), **RUBRIC_GROUP})
def rubric_corrected(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Scores corrected by people's labels of a few drawn prompts: one row per model over all blueprints, then one per blueprint and model.

    `corrected` estimates the board's own number, had people decided every point that judges decide; its interval takes prompts for a sample of
    what might be asked, `here_low` to `here_high` is of these very prompts. Beside it stands `rubric_known_classes`, how often each judge says
    what people say. Both are empty until labels are imported (`dtef import labels`). No model is asked.
    """
    require_scored(store)
    labels, draws = (store.warehouse.read_or_empty(name).to_pandas() for name in ("rubric_labels", "rubric_label_draws"))
    tables = store.warehouse.query(lambda connection: corrected_tables(connection, labels, draws), only=CORRECTED_READS)
    shown = ["blueprint", "model", "judged", "corrected", "corrected_low", "corrected_high", "n_prompts_labelled", "reason"]
    of_judges = ["judge", "said", "n", "same", "near", "bias", "note"]
    return published(
        store,
        tables,
        labels=len(labels),
        corrected=markdown(tables["rubric_corrected"], shown, most=30),
        known_classes=markdown(tables["rubric_known_classes"], of_judges, most=30),
    )
