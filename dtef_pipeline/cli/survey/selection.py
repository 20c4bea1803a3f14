"""The settings of `dtef run`: models, conditions and prompts, from options."""

from collections.abc import Collection, Mapping
from typing import Any

from dtef_pipeline.asking.models import Models
from dtef_pipeline.cli.stage_runs import name_of_asked
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.run_settings import build_option_settings
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.text.name_matching import list_nearest
from resources.model_catalog import load_known_models
from resources.settings import Settings


def survey_settings(values: Mapping[str, Any]) -> SurveySettings:
    """Return the settings that options give, with model names resolved and conditions spelled in full. `limits`: MODEL=N each.

    Raises ConfigError for conflicting options, and for an unknown model or condition.
    """
    models, options = load_known_models(Settings.read_environment(), COMPUTED_MODELS), dict(values)
    limits, rounds = options.pop("limits", ()), options.get("rounds")
    if not rounds:
        raise ConfigError("no round: name one with --round (`dtef list` lists them)")
    options["rounds"] = list(dict.fromkeys(rounds))
    settings = _select_from_options(options, models)
    return settings.model_copy(update={"limits": _parse_limits(limits, settings.models, models)})


def _select_from_options(values: Mapping[str, Any], models: Models) -> SurveySettings:
    """Return the options' settings. With `from_store` only named models and conditions; else baselines and context level 0 are defaults."""
    usual = {"models": [], "conditions": []} if values.get("from_store") else {"context_levels": ["0"]}
    settings = build_option_settings(SurveySettings, {**usual, **values})
    levels = list(dict.fromkeys(settings.context_levels or ["0"])) if settings.conditions else []
    conditions = (BlueprintOptions.parse_condition(text, levels).condition for text in settings.conditions)
    names = [spec.name for spec in models.resolve(settings.models)]
    named = {"models": names, "conditions": list(dict.fromkeys(conditions)), "context_levels": levels}
    return settings.model_copy(update=named)


def _parse_limits(texts: tuple[str, ...], names: Collection[str], models: Models) -> dict[str, int]:
    limits = {}
    for text in texts:
        model, _, limit = text.rpartition("=")
        if not model or not (limit.isascii() and limit.isdigit()):
            raise ConfigError(f"--limit {text!r} is not of the form MODEL=N, such as gpt-4.1-mini=100")
        if (name := name_of_asked(model, names, models)) is None:
            raise ConfigError(f"--limit {model}: not a model of this run; its models: {list_nearest(model, names)}")
        limits[name] = int(limit)
    return limits
