"""The nightly schedule of questions: the panel's parts are asked and judged again in a snapshot of the night."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.engine.panel import family_panel
from assets.qa.files import known_parts
from assets.qa.lookups import asked_server
from assets.qa.stages import arbiter_of_run
from assets.stage.asked import models_of
from assets.stage.night_request import night_request
from assets.stage.resources import Store
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.qa.filter_faults import filter_faults
from dtef_pipeline.qa.settings import QA_ANCHOR_SETTINGS, QA_PANEL_SECTION, QA_STAGE_SETTINGS, QaSettings, parts_of_panel
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.remote import REMOTE


@dg.schedule(
    name="nightly_questions",
    job_name="qa_night",
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night at 3:00 UTC: the parts of suites that the panel's section `qa` (DTEF_PANEL) names are asked and judged again, in a "
    "snapshot named after the date. In the same run the judge is shown stored answers again. Off until switched on.",
)
def nightly_questions(context: dg.ScheduleEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run for the panel, from the prompts on. Parts that were added and never made are left out and named."""
    panel = family_panel(store.settings, QA_PANEL_SECTION, QaSettings)
    if panel is None or not panel.names_parts:
        return dg.SkipReason(
            f"no panel file with a section `{QA_PANEL_SECTION}` that names suites or parts is named in DTEF_PANEL"
        )
    known = known_parts(context.instance)
    wanted = parts_of_panel(panel, known)
    keys = [
        key for key in wanted if len(store.warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))
    ]
    if not keys:
        return dg.SkipReason("no part of the panel has been added and made yet: `dtef qa add SUITE PATH` does")
    night = context.scheduled_execution_time.date().isoformat()
    settings = panel.model_copy(update={"snapshot": night})
    for key, text in _filter_faults(settings, store, keys).items():
        context.log.warning(f"{key}: {text}")
    return night_request(context, "questions", night, known, wanted, keys, _config(settings, store))


def _config(settings: QaSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Configuration by stage. Raises ConfigError for a model, a judge or a server that is not known, before anything is asked."""
    models = models_of(store)
    models.resolve(settings.models)
    if settings.retriever == REMOTE:
        asked_server(store.settings)
    stages = {name: names for name, names in QA_STAGE_SETTINGS.items() if name != "qa_items"}
    if settings.anchors and arbiter_of_run(models, settings) is not None:
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


QA_SCHEDULES = [nightly_questions]
