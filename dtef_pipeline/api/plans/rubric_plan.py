"""Evaluations by rubrics: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from dtef_pipeline.api.plans.manifest_base import (
    EvaluationAsked,
    NoneKnown,
    a_run_each,
    chosen_partitions,
    made_partitions,
    manifest_form,
    models_named,
    refused,
    require_askable,
    require_few_draws,
    require_label,
)
from dtef_pipeline.api.plans.plan import PlannedEvaluation, Refusals
from dtef_pipeline.asking.models import Budget, Models, ModelSpec
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.judging.judges import named_judges
from dtef_pipeline.rubric.candidates import Candidates
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings, blueprints_of_panel
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from resources.gateway.budget import Accounts
from resources.settings import Settings

_LACKING_BLUEPRINTS = NoneKnown("blueprints", "no blueprint was added on this server yet", "rubric_blueprints")


class RubricManifest(EvaluationAsked):
    """Models answer the prompts of blueprints, and judges say which criteria are met."""

    family: Literal["rubric"]
    blueprints: Annotated[list[str], Field(min_length=1)]
    """Ids, or patterns with * and ?."""
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and litellm strings where the server allows them; settings follow an @."""


RubricEvaluation = manifest_form(RubricManifest, "RubricEvaluation", RubricSettings)


def planned_rubric(manifest: RubricManifest, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the responses on; from the blueprints on where one was never made, or criteria are to be extracted.

    Raises UnknownName for blueprints and models that are not there, and UnfitManifest for judges and settings that cannot be.
    """
    asked = manifest.settings(RubricSettings)
    models, keys = _named(asked, settings)
    with refused("models"):
        candidates = Candidates(models, asked.models)
    # These bring pandas, which the API starts without.
    from dtef_pipeline.rubric.extractions import extracting_model
    from dtef_pipeline.rubric.summary_rows import chosen_analysts

    with refused("analysts"):
        analysts = chosen_analysts(asked.analysts, models)
        if asked.extract_points:
            analysts = (extracting_model(asked.analysts, models), *analysts)
    runs = a_run_each(keys, "blueprints")
    _require_few_draws(asked, keys, settings)
    require_label(settings, "rubric_responses", RUBRIC_SPACE, keys, asked.snapshot)
    specs, judges = _asked_of(asked, keys, candidates, models, settings)
    in_all = Accounts(Budget(max_cost_usd=asked.max_cost_usd), {})
    warnings: list[str] = []
    for field, some in (("models", specs), ("judges", judges), ("analysts", analysts if asked.analysts else ())):
        warnings += require_askable(field, some, asked.snapshot, settings, in_all)
    made = made_partitions(settings, "rubric_blueprints", RUBRIC_SPACE)
    first = [] if asked.extract_points or not made.issuperset(keys) else ["rubric_blueprints"]
    config = run_config(asked, {name: names for name, names in RUBRIC_STAGE_SETTINGS.items() if name not in first})
    return PlannedEvaluation("rubric_pipeline", RUBRIC_SPACE.name, keys, config, asked.snapshot, runs, warnings=warnings)


def refuse_rubric_names(given: Mapping[str, Any], settings: Settings) -> None:
    """Raises RefusedManifest with all names that are not there, of what a manifest has of models, judges, analysts and blueprints."""
    _named(RubricSettings.model_construct(**{"blueprints": [], **given}), settings)


def _named(asked: RubricSettings, settings: Settings) -> tuple[Models, list[str]]:
    """The known models, and the blueprints that a manifest, or part of one, names.

    Raises RefusedManifest with all names that cannot be, also those of judges and analysts.
    """
    refusals = Refusals()
    with refusals.kept():
        models = models_named(settings, "models", asked.models)
    with refusals.kept():
        _require_judges(settings, asked.judges)
    with refusals.kept():
        models_named(settings, "analysts", asked.analysts)
    keys: list[str] = []
    if asked.blueprints:
        with refusals.kept():
            keys = chosen_partitions(settings, RUBRIC_SPACE, _LACKING_BLUEPRINTS, partial(blueprints_of_panel, asked))
    refusals.raise_all()
    return models, keys


def _require_judges(settings: Settings, judges: Sequence[str]) -> None:
    """Raises RefusedManifest with all judges that are not written APPROACH=MODEL, or whose model is not known or cannot be."""
    refusals = Refusals()
    for one in refusals.until_enough(judges):
        with refusals.kept():
            model = one.partition("=")[2]
            models = models_named(settings, "judges", [model] if model else [])
            with refused("judges"):
                named_judges([one], models)
    refusals.raise_all()


def _require_few_draws(asked: RubricSettings, keys: Sequence[str], settings: Settings) -> None:
    """Raises UnfitManifest for more responses, or more judgements of a criterion by a judge, than an evaluation may ask for."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    drawn = {"draws": asked.draws}
    if asked.judge_draws > 1:
        drawn["judge_draws"] = asked.draws * asked.judge_draws
    for field, draws in drawn.items():
        prompts = (
            warehouse.read_or_empty("rubric_prompts", columns=["systems", "temperatures"], blueprint=key).to_pylist()
            for key in keys
        )
        require_few_draws(
            field,
            draws,
            (sum(max(1, len(one["systems"] or ())) * len(one["temperatures"]) for one in rows) for rows in prompts),
        )


def _asked_of(
    asked: RubricSettings, keys: Sequence[str], candidates: Candidates, models: Models, settings: Settings
) -> tuple[list[ModelSpec], list[ModelSpec]]:
    """The models that answer the prompts of these blueprints, at their temperatures, and those that judge; of what was made so far.

    Raises UnfitManifest where nobody is named who judges.
    """
    from dtef_pipeline.rubric.extractions import will_be_judged
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    temperatures: set[float] = set()
    judges: dict[str, ModelSpec] = {}
    for key in keys:
        prompts = warehouse.read_or_empty("rubric_prompts", columns=["prompt", "ideal", "temperatures"], blueprint=key)
        temperatures.update(one for each in prompts["temperatures"].to_pylist() for one in each)
        criteria = warehouse.read_or_empty("rubric_criteria", columns=["prompt", "kind"], blueprint=key)
        if will_be_judged(prompts, criteria, extracting=asked.extract_points):
            head = warehouse.read_or_empty("rubric_blueprints", columns=["judges"], blueprint=key)["judges"].to_pylist()
            with refused("judges"):
                found = chosen_judges(asked.judges, head[0] if head else [], models, asked.scale)
            judges |= {one.model.variant: one.model for one in found}
    return candidates.at(sorted(temperatures)), list(judges.values())
