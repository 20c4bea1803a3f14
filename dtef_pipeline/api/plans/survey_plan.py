"""Evaluations by surveys: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from dtef_pipeline.api.plans.manifest_base import (
    EvaluationAsked,
    NoneKnown,
    a_run_each,
    chosen_partitions,
    models_named,
    refuse_absent_names,
    refused,
    require_askable,
    require_few_draws,
    require_label,
)
from dtef_pipeline.api.plans.plan import PlannedEvaluation, Refusals
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.asked_rounds import SurveyAsked
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import SPACE
from resources.gateway.budget import Accounts
from resources.settings import Settings

_LACKING_ROUNDS = NoneKnown("rounds", "no round of a survey was ingested on this server yet", "survey_responses")


class SurveyEvaluation(EvaluationAsked, SurveyAsked):
    """Models predict how segments of people answer the questions of survey rounds."""

    family: Literal["survey"]
    rounds: Annotated[list[str], Field(min_length=1)]
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and litellm strings where the server allows them; settings follow an @."""
    context_levels: Annotated[list[str], Field(min_length=1), BeforeValidator(ContextLevel.written)] = ["0"]
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

    Raises UnknownName for rounds, segments and models that are not there, and UnfitManifest for settings, budgets and models
    that cannot be asked.
    """
    refusals = Refusals()
    with refusals.kept():
        models = models_named(settings, "models", manifest.models)
        with refused("budgets"):
            asked = manifest.run_config(models, manifest.snapshot)
    with refusals.kept():
        keys = chosen_partitions(settings, SPACE, _LACKING_ROUNDS, manifest.partitions)
    refusals.raise_all()
    runs = a_run_each(keys, "rounds")
    require_few_draws("draws", manifest.draws, _numbers_of_prompts(manifest, keys, settings))
    require_label(settings, "predictions", SPACE, keys, manifest.snapshot)
    specs = manifest.asked(models)
    budgets = {spec.name: spec.budget for spec in specs} | manifest.budgets_of(models)
    in_all = Budget(max_cost_usd=manifest.budget.max_cost_usd)
    warnings = require_askable("models", specs, manifest.snapshot, settings, Accounts(in_all, budgets))
    how = {"conditions": manifest.conditions, "context_levels": manifest.context_levels}
    config = {"blueprints": how, **asked}
    return PlannedEvaluation("round_pipeline", SPACE.name, keys, config, manifest.snapshot, runs, warnings=warnings)


def refuse_survey_names(given: Mapping[str, Any], settings: Settings) -> None:
    """Raises RefusedManifest with all names that are not there, of what a manifest has of models, rounds and segments."""
    names_some = given.get("rounds") or given.get("segments")
    choose = SurveyEvaluation.model_construct(**given).partitions if names_some else None
    refuse_absent_names(settings, {"models": given.get("models", ())}, SPACE, _LACKING_ROUNDS, choose)


def _numbers_of_prompts(manifest: SurveyEvaluation, keys: Sequence[str], settings: Settings) -> Iterator[int]:
    """By partition, of the questions that are drawn."""
    from dtef_pipeline.survey.question_draw import DRAW_ORDERS, Sample
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    ways = len(manifest.conditions) * len(manifest.context_levels)
    sample = Sample(manifest.questions, manifest.sample_segments)
    for key in keys:
        survey = warehouse.read_or_empty("survey_responses", columns=["question_id", *DRAW_ORDERS], **SPACE.levels(key))
        yield ways * len(sample.questions_of(survey))
