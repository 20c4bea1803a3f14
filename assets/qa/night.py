"""The nightly schedule of questions: the panel's parts are asked and judged again in a snapshot of the night."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.engine.family_nights import NightPlan, build_night_schedule
from assets.qa.lookups import open_retrieval_server
from assets.qa.stages import resolve_run_arbiter
from assets.stage.file_notes import list_partitions
from assets.stage.request_batches import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.qa.prompt_rows import filter_faults
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QA_PANEL_SECTION, QA_STAGE_SETTINGS, QaSettings, select_panel_parts
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.remote import REMOTE


def plan_questions(context: dg.ScheduleEvaluationContext, store: Store, panel: QaSettings) -> NightPlan:
    """From the prompts on. Parts that were added and never made are left out and named."""
    known_parts = list_partitions(context.instance, QA_SPACE)
    parts = select_panel_parts(panel, known_parts)
    keys = [key for key in parts if len(store.warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))]
    for key, text in _filter_faults(panel, store, keys).items() if keys else ():
        context.log.warning(f"{key}: {text}")
    return NightPlan(known_parts, parts, keys, _config(panel, store) if keys else {})


def _config(settings: QaSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Configuration by stage. Raises ConfigError for a model, a judge or a server that is not known, before anything is asked."""
    models = load_store_models(store)
    models.resolve(settings.models)
    if settings.retriever == REMOTE:
        open_retrieval_server(store.settings)
    stages = {name: names for name, names in QA_STAGE_SETTINGS.items() if name != "qa_items"}
    if settings.anchors and resolve_run_arbiter(models, settings) is not None:
        stages["qa_anchors"] = QA_ANCHOR_SETTINGS
    return run_config(settings, stages)


def _filter_faults(settings: QaSettings, store: Store, keys: Sequence[str]) -> dict[str, str]:
    """By part why its models would be asked about no document. Raises ConfigError where this is so of all that have some."""
    return filter_faults(
        keys,
        settings.how,
        lambda key, columns: store.warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
        given_as=f"{QA_PANEL_SECTION}.filter",
    )


nightly_questions = build_night_schedule(
    FAMILY_BY_NAME["qa"],
    plan_questions,
    name="nightly_questions",
    job="qa_night",
    at=(3, 0),
    description="the parts of suites that the panel's section `qa` (DTEF_PANEL) names are asked and judged again, in a snapshot named after the "
    "date. In the same run the judge is shown stored answers again.",
    label="questions",
    nothing="no part of the panel has been added yet: `dtef qa add SUITE PATH` does",
    names_any=lambda panel: panel.names_parts,
    named=" that names suites or parts",
)
QA_SCHEDULES = [nightly_questions]
