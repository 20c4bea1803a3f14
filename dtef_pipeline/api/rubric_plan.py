"""Evaluations by rubrics: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dtef_pipeline.api.asked_settings import (
    EvaluationAsked,
    a_run_each,
    known_partitions,
    made_partitions,
    models_named,
    refused,
)
from dtef_pipeline.api.plans import PlannedEvaluation, UnknownName
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.judges import named_judges
from dtef_pipeline.rubric.night_panel import PANEL_SECTION, RubricAsked
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from resources.settings import Settings

NO_BLUEPRINT_ADDED = "no blueprint was added yet: `dtef rubric add PATH` adds some"


class RubricEvaluation(EvaluationAsked, RubricAsked):
    """Models answer the prompts of blueprints, and judges say which criteria are met."""

    family: Literal["rubric"]
    blueprints: Annotated[list[str], Field(min_length=1)]
    """Ids, or patterns with * and ?."""
    models: Annotated[list[str], Field(min_length=1)]
    """Names, collections, or litellm strings; settings follow an @."""


def planned_rubric(manifest: RubricEvaluation, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the responses on; from the blueprints on where one was never made, or criteria are to be extracted.

    Raises UnknownName for blueprints and models that are not there, and UnfitManifest for judges and settings that cannot be.
    """
    models = models_named(settings, "models", manifest.models)
    models_named(settings, "analysts", manifest.analysts)
    with refused("judges"):
        named_judges(manifest.judges, models)
    keys = _blueprints(manifest, settings)
    config = manifest.run_config(manifest.snapshot)
    if not made_partitions(settings, "rubric_blueprints", RUBRIC_SPACE).issuperset(keys):
        config = {"rubric_blueprints": {"snapshot": manifest.snapshot, **manifest.bounds}, **config}
    return PlannedEvaluation(
        "rubric_pipeline", RUBRIC_SPACE.name, keys, config, manifest.snapshot, a_run_each(keys, "blueprints")
    )


def _blueprints(manifest: RubricEvaluation, settings: Settings) -> list[str]:
    known = known_partitions(settings, RUBRIC_SPACE)
    if not known:
        raise UnknownName(f"blueprints: {NO_BLUEPRINT_ADDED}")
    try:
        return manifest.chosen(known)
    except ConfigError as error:
        raise UnknownName(str(error).removeprefix(f"{PANEL_SECTION}.")) from None
