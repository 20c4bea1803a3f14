"""The pages of the rubric family: the board with its slider, and a page per blueprint."""

from typing import Any

import dagster as dg

from assets.preference.voted_scores import preference_scores
from assets.rubric.drift import rubric_drift
from assets.rubric.files import RUBRIC_GROUP
from assets.rubric.roll_ups import (
    require_scored,
    rubric_agreement,
    rubric_board,
    rubric_champions,
    rubric_corrected,
    rubric_costs,
    rubric_validity,
)
from assets.stage.partitions import roll_up
from assets.stage.published import published_pages
from assets.stage.resources import Store
from dtef_pipeline.families import SHARED_TABLES
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ
from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES

PAGES_FOLDER = "rubric_report"


@dg.asset(
    deps=[
        rubric_board,
        rubric_corrected,
        rubric_champions,
        rubric_agreement,
        rubric_validity,
        rubric_drift,
        rubric_costs,
        preference_scores,
    ],
    **{**roll_up(code_version="2", kinds={"html"}), **RUBRIC_GROUP},
)
def rubric_report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Self-contained pages for researchers: the board with a slider for the weight of similarity, and a page per blueprint.

    A blueprint's page has its prompts, the responses side by side, every criterion with each judge's class and reflection, agreement, costs and
    the findings of the loader. Kept in the folder `rubric_report` of the warehouse, where pages of blueprints and prompts that are no more are
    removed; `dtef report --family rubric` writes the pages elsewhere.
    """
    require_scored(store)
    return published_pages(store, PAGES_FOLDER, rubric_pages, (*RUBRIC_TABLES, *SHARED_TABLES, *PREFERENCE_READ))
