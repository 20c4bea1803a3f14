"""The nightly schedule of the qa family: runs and judges the panel's parts in a new snapshot."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.qa.lookups import open_retrieval_server
from assets.qa.stages import resolve_run_arbiter
from assets.stage.file_notes import list_partitions
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.qa.prompt_rows import filter_faults
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QA_PANEL_SECTION, QA_STAGE_SETTINGS, QaSettings, select_panel_parts
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.retriever import REMOTE


def plan_questions(context: dg.ScheduleEvaluationContext, store: Store, panel: QaSettings) -> NightPlan:
    """Plan the stages from the prompts on. Parts that were added but never materialized are left out and reported."""
    known_parts = list_partitions(context.instance, QA_SPACE)
    parts = select_panel_parts(panel, known_parts)
    keys = [key for key in parts if len(store.warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))]
    for key, text in _filter_faults(panel, store, keys).items() if keys else ():
        context.log.warning(f"{key}: {text}")
    return NightPlan(known_parts, parts, keys, _config(panel, store) if keys else {})


def _config(settings: QaSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Return the configuration by stage. Raises ConfigError for an unknown model, judge or server, before any request."""
    models = load_store_models(store)
    models.resolve(settings.models)
    if settings.retriever == REMOTE:
        open_retrieval_server(store.settings)
    stages = {name: names for name, names in QA_STAGE_SETTINGS.items() if name != "qa_items"}
    if settings.anchors and resolve_run_arbiter(models, settings) is not None:
        stages["qa_anchors"] = QA_ANCHOR_SETTINGS
    return run_config(settings, stages)


def _filter_faults(settings: QaSettings, store: Store, keys: Sequence[str]) -> dict[str, str]:
    """Return by part the error of a filter that matches no document. Raises ConfigError if it matches none of any part."""
    return filter_faults(
        keys,
        settings.ask_settings,
        lambda key, columns: store.warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
        given_as=f"{QA_PANEL_SECTION}.filter",
    )


qa_nightly_schedule = build_night_schedule(
    FAMILY_BY_NAME["qa"],
    plan_questions,
    name="qa_nightly",
    job="qa_nightly",
    time=(3, 0),
    description="runs and judges again the parts of suites that the section `qa` of the panel (DTEF_PANEL) names, in a snapshot named "
    "after the date. The same run rejudges the anchors (stored responses).",
    label="questions",
    skip_reason="no part of the panel has been added yet; run `dtef qa add SUITE PATH`",
    names_any=lambda panel: panel.names_parts,
    named=" that names suites or parts",
)
QA_SCHEDULES = [qa_nightly_schedule]
