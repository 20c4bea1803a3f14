"""Evaluations by questions with expected answers: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dtef_pipeline.api.asked_settings import (
    EvaluationAsked,
    a_run_each,
    known_partitions,
    made_partitions,
    models_named,
    refused,
)
from dtef_pipeline.api.plans import PlannedEvaluation, UnknownName
from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.arbiter import chosen_arbiter
from dtef_pipeline.qa.asked_parts import QA_PANEL_SECTION, QaAsked
from dtef_pipeline.qa.space import QA_SPACE
from resources.settings import Settings, shipped

NO_PART_ADDED = "no questions were added yet: `dtef qa add SUITE PATH` adds some"


class QaEvaluation(EvaluationAsked, QaAsked):
    """Models answer the questions of parts of suites. How code is isolated is the server's own setting (DTEF_SANDBOX)."""

    family: Literal["qa"]
    models: Annotated[list[str], Field(min_length=1)]
    """Names, collections, or litellm strings; settings follow an @."""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.names_parts:
            raise ValueError("suites and parts are both empty; allowed: one name or more in either")
        return self


def planned_qa(manifest: QaEvaluation, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the prompts on; from the items on where those of a part were never made.

    Raises UnknownName for suites, parts and models that are not there, and UnfitManifest for a judge and settings that cannot be.
    """
    _require_judge(manifest, models_named(settings, "models", manifest.models))
    keys = _parts(manifest, settings)
    config = manifest.run_config(manifest.snapshot)
    if not made_partitions(settings, "qa_items", QA_SPACE).issuperset(keys):
        config = {"qa_items": {}, **config}
    return PlannedEvaluation("qa_pipeline", QA_SPACE.name, keys, config, manifest.snapshot, a_run_each(keys, "parts"))


def _parts(manifest: QaEvaluation, settings: Settings) -> list[str]:
    known = known_partitions(settings, QA_SPACE)
    if not known:
        raise UnknownName(f"suites: {NO_PART_ADDED}")
    try:
        return manifest.chosen(known)
    except ConfigError as error:
        raise UnknownName(str(error).removeprefix(f"{QA_PANEL_SECTION}.")) from None


def _require_judge(manifest: QaEvaluation, models: Models) -> None:
    with refused("judge"):
        chosen_arbiter(
            shipped("judges.yaml"),
            models,
            judge=manifest.judge,
            sample_rate=manifest.sample_rate,
            daily_budget=manifest.daily_budget,
        )
