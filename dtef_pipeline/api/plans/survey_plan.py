"""Evaluations by surveys: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dtef_pipeline.api.plans.manifest_base import (
    EvaluationAsked,
    NoneKnown,
    a_run_each,
    chosen_partitions,
    manifest_form,
    models_named,
    refuse_absent_names,
    refused,
    require_askable,
    require_few_draws,
    require_label,
)
from dtef_pipeline.api.plans.plan import PlannedEvaluation, Refusals
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.family.run_settings import readable
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SurveySettings, partitions_of_panel, survey_run_config, with_named_models
from resources.gateway.budget import Accounts
from resources.settings import Settings

_LACKING_ROUNDS = NoneKnown("rounds", "no round of a survey was ingested on this server yet", "survey_responses")


def _require_prompts(conditions: list[str]) -> None:
    """Raises ConfigError for system prompts in words of one's own: these are given to `dtef run` alone."""
    for one in conditions:
        BlueprintOptions.of_condition(one)


class SurveyManifest(EvaluationAsked):
    """Models predict how segments of people answer the questions of survey rounds."""

    family: Literal["survey"]
    rounds: Annotated[list[str], Field(min_length=1)]
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and litellm strings where the server allows them; settings follow an @."""
    context_levels: Annotated[list[str], Field(min_length=1), BeforeValidator(ContextLevel.written)] = ["0"]
    """Numbers of context questions, or `all`."""
    conditions: Annotated[list[str], Field(min_length=1), readable(_require_prompts)] = [BlueprintOptions().condition]
    """Ways of asking, such as shift/narrative+cot."""


SurveyEvaluation = manifest_form(SurveyManifest, "SurveyEvaluation", SurveySettings)


def planned_survey(manifest: SurveyManifest, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the prompts on, which are made where they are not there.

    Raises UnknownName for rounds, segments and models that are not there, and UnfitManifest for settings, budgets and models
    that cannot be asked.
    """
    asked = manifest.settings(SurveySettings).model_copy(update={"context_levels": manifest.context_levels})
    refusals = Refusals()
    with refusals.kept():
        models = models_named(settings, "models", asked.models)
        with refused("budgets"):
            named = with_named_models(asked, models)
    with refusals.kept():
        keys = chosen_partitions(settings, SPACE, _LACKING_ROUNDS, partial(partitions_of_panel, asked))
    refusals.raise_all()
    runs = a_run_each(keys, "rounds")
    require_few_draws("draws", asked.draws, _numbers_of_prompts(asked, keys, settings))
    require_label(settings, "predictions", SPACE, keys, asked.snapshot)
    specs = models.resolve(named.models)
    budgets = {spec.name: spec.budget for spec in specs} | named.budgets
    in_all = Budget(max_cost_usd=asked.max_cost_usd)
    warnings = require_askable("models", specs, asked.snapshot, settings, Accounts(in_all, budgets))
    config = survey_run_config(named)
    return PlannedEvaluation("survey_pipeline", SPACE.name, keys, config, asked.snapshot, runs, warnings=warnings)


def refuse_survey_names(given: Mapping[str, Any], settings: Settings) -> None:
    """Raises RefusedManifest with all names that are not there, of what a manifest has of models, rounds and segments."""
    names_some = given.get("rounds") or given.get("segments")
    choose = partial(partitions_of_panel, SurveySettings.model_construct(**given)) if names_some else None
    refuse_absent_names(settings, {"models": given.get("models", ())}, SPACE, _LACKING_ROUNDS, choose)


def _numbers_of_prompts(asked: SurveySettings, keys: Sequence[str], settings: Settings) -> Iterator[int]:
    """By partition, of the questions that are drawn."""
    from dtef_pipeline.survey.question_draw import DRAW_ORDERS
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    ways = len(asked.conditions) * len(asked.context_levels)
    for key in keys:
        survey = warehouse.read_or_empty("survey_responses", columns=["question_id", *DRAW_ORDERS], **SPACE.levels(key))
        yield ways * len(asked.sample.questions_of(survey))
