"""The nightly schedule of questions: the panel's parts are asked and judged again in a snapshot of the night."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.qa.files import known_parts
from assets.qa.judgements import QaJudgementsConfig
from assets.qa.lookups import asked_server
from assets.qa.panel_part import qa_panel
from assets.qa.prompts import HowConfig
from assets.stage.asked import models_of
from assets.stage.night_request import night_request
from assets.stage.resources import Store
from dtef_pipeline.qa.asked_parts import QA_PANEL_SECTION
from dtef_pipeline.qa.filter_faults import filter_faults
from dtef_pipeline.qa.night_panel import QaPanel
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
    panel = qa_panel(store.settings)
    if panel is None or not panel.names_parts:
        return dg.SkipReason(
            f"no panel file with a section `{QA_PANEL_SECTION}` that names suites or parts is named in DTEF_PANEL"
        )
    known = known_parts(context.instance)
    wanted = panel.chosen(known)
    keys = [
        key for key in wanted if len(store.warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))
    ]
    if not keys:
        return dg.SkipReason("no part of the panel has been added and made yet: `dtef qa add SUITE PATH` does")
    night = context.scheduled_execution_time.date().isoformat()
    config = _config(panel, store, night)
    for key, text in _filter_faults(config, store, keys).items():
        context.log.warning(f"{key}: {text}")
    return night_request(context, "questions", night, known, wanted, keys, config)


def _config(panel: QaPanel, store: Store, night: str) -> dict[str, dict[str, Any]]:
    """Configuration by stage. Raises ConfigError for a model, a judge or a server that is not known, before anything is asked."""
    models_of(store).resolve(panel.models)
    if panel.retriever == REMOTE:
        asked_server(store.settings)
    config = panel.run_config(night)
    judges = QaJudgementsConfig(**config["qa_judgements"]).arbiter(store) is not None
    return {**config, **(panel.anchors_config(night) if judges else {})}


def _filter_faults(config: Mapping[str, dict[str, Any]], store: Store, keys: Sequence[str]) -> dict[str, str]:
    """By part why its models would be asked about no document. Raises ConfigError where this is so of all that have some."""
    return filter_faults(
        keys,
        HowConfig(**config["qa_prompts"]).how,
        lambda key, columns: store.warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
        given_as=f"{QA_PANEL_SECTION}.filter",
    )


QA_SCHEDULES = [nightly_questions]
