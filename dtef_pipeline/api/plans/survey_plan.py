"""Evaluations on surveys: models predict how segments of people answer the questions of survey rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dtef_pipeline.api.plans.family_plans import FamilyPlans, PlanSource, ResolvedNames
from dtef_pipeline.api.plans.manifest_base import EvaluationRequest, build_manifest_model, rejections, require_askable
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.family.run_settings import make_validator
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import (
    SURVEY_STAGE_SETTINGS,
    SurveySettings,
    build_survey_run_config,
    resolve_panel_models,
    select_panel_partitions,
)
from resources.gateway.budget import Accounts
from resources.settings import Settings


def _require_prompts(conditions: list[str]) -> None:
    """Raise ConfigError for custom system prompts, which only `dtef run` accepts."""
    for condition in conditions:
        BlueprintOptions.parse_condition(condition)


class SurveyManifest(EvaluationRequest):
    """Models predict how segments of people answer the questions of survey rounds."""

    family: Literal["survey"]
    rounds: Annotated[list[str], Field(min_length=1)]
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and LiteLLM strings if the server allows them; settings follow an @."""
    context_levels: Annotated[list[str], Field(min_length=1), BeforeValidator(ContextLevel.convert_numbers)] = ["0"]
    """Numbers of context questions, or `all`."""
    conditions: Annotated[list[str], Field(min_length=1), make_validator(_require_prompts)] = [BlueprintOptions().condition]
    """Conditions, such as shift/narrative+cot."""


SurveyEvaluation = build_manifest_model(SurveyManifest, "SurveyEvaluation", SurveySettings)


class SurveyPlans(FamilyPlans):
    """The run begins with the prompts, which are made if missing."""

    field = "rounds"
    nothing_added = "no survey round has been ingested on this server yet"
    form = SurveyEvaluation

    def settings(self, manifest: EvaluationRequest) -> SurveySettings:
        assert isinstance(manifest, SurveyManifest)
        return manifest.settings(SurveySettings).model_copy(update={"context_levels": manifest.context_levels})

    def names_partitions(self, values: Mapping[str, Any]) -> bool:
        return bool(values.get("rounds") or values.get("segments"))

    def choose(self, values: Mapping[str, Any], settings: SurveySettings, keys: Sequence[str]) -> list[str]:
        return select_panel_partitions(settings, keys)

    def require_askable(self, settings: SurveySettings, named: ResolvedNames, server: Settings) -> list[str]:
        """Check the models' budgets, too."""
        with rejections("budgets"):
            panel = resolve_panel_models(settings, named.models)
        specs = named.models.resolve(panel.models)
        budgets = {spec.name: spec.budget for spec in specs} | panel.budgets
        run_budget = Budget(max_cost_usd=settings.max_cost_usd)
        return require_askable("models", specs, settings.snapshot, server, Accounts(run_budget, budgets))

    def config(self, settings: SurveySettings, named: ResolvedNames, all_made: bool) -> Mapping[str, Mapping[str, Any]]:
        return build_survey_run_config(resolve_panel_models(settings, named.models))


SURVEY_PLANS = SurveyPlans(
    PlanSource("survey", SPACE, SurveySettings, SURVEY_STAGE_SETTINGS, "survey_responses", "predictions")
)
