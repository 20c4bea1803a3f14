"""Evaluations by surveys: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from dtef_pipeline.api.asked_settings import EvaluationAsked, a_run_each, known_partitions, models_named, refused, unknown
from dtef_pipeline.api.plans import PlannedEvaluation, UnknownName
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.asked_rounds import SurveyAsked
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import SPACE
from resources.settings import Settings

NO_ROUND_INGESTED = "no round was ingested yet: `dtef ingest PATH` ingests one"


class SurveyEvaluation(EvaluationAsked, SurveyAsked):
    """Models predict how segments of people answer the questions of survey rounds."""

    family: Literal["survey"]
    rounds: Annotated[list[str], Field(min_length=1)]
    models: Annotated[list[str], Field(min_length=1)]
    """Names, collections, or litellm strings; settings follow an @."""
    context_levels: Annotated[list[str], Field(min_length=1), BeforeValidator(ContextLevel.written)] = ["0"]  # noqa: RUF012 - pydantic copies it
    """Numbers of context questions, or `all`."""

    @field_validator("conditions")
    @classmethod
    def _can_be_made(cls, conditions: list[str]) -> list[str]:
        """Prompts are made for them: system prompts in words of one's own are given to `dtef run` alone."""
        try:
            return [BlueprintOptions.of_condition(one).condition for one in conditions]
        except ConfigError as error:
            raise ValueError(str(error)) from None


def planned_survey(manifest: SurveyEvaluation, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the prompts on, which are made where they are not there.

    Raises UnknownName for rounds, segments and models that are not there, and UnfitManifest for settings and budgets that cannot be.
    """
    models = models_named(settings, "models", manifest.models)
    with refused("budgets"):
        asked = manifest.run_config(models, manifest.snapshot)
    known = known_partitions(settings, SPACE)
    if not known:
        raise UnknownName(f"rounds: {NO_ROUND_INGESTED}")
    with unknown("rounds and segments"):
        keys = manifest.partitions(known)
    how = {"conditions": manifest.conditions, "context_levels": manifest.context_levels}
    config = {"blueprints": how, **asked}
    return PlannedEvaluation("round_pipeline", SPACE.name, keys, config, manifest.snapshot, a_run_each(keys, "rounds"))
