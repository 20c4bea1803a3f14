"""The settings of `dtef run`: models, conditions and prompts, from options or an experiment."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.cli.role_budgets import name_of_asked
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.run_settings import Setting, build_option_settings
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.experiments import ConditionModel, Experiment, load_experiment, resolve_asked_models
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.text.name_matching import list_nearest
from resources.model_catalog import load_known_models
from resources.settings import Settings, find_shipped


class SurveyRunSettings(SurveySettings):
    """Survey settings with resolved model names in `models` and `limits`, and conditions spelled in full."""

    experiment: Annotated[Experiment | None, Setting(doors=())] = None
    """With its models, and the context levels of the run."""


def survey_settings(values: Mapping[str, Any]) -> SurveyRunSettings:
    """Return the settings that options give. `limits`: MODEL=N each; `experiment`: a file, or the name of a shipped one.

    Raises ConfigError for conflicting options, and for an unknown model, condition or experiment.
    """
    models, options = load_known_models(Settings.read_environment(), COMPUTED_MODELS), dict(values)
    limits, name = options.pop("limits", ()), options.pop("experiment", None)
    experiment = find_experiment(name) if name else None
    rounds = options.get("rounds") or [round_id.upper() for round_id in (experiment.rounds if experiment else ())]
    if not rounds:
        raise ConfigError("no round: name one with --round (`dtef list` lists them), or an experiment with rounds")
    options["rounds"] = list(dict.fromkeys(rounds))
    settings = _select_from_experiment(options, experiment, models) if experiment else _select_from_options(options, models)
    return settings.model_copy(update={"limits": _parse_limits(limits, settings.models, models)})


def find_shipped_experiments() -> dict[str, Path]:
    return {path.stem: path for path in sorted(find_shipped("experiments").glob("*.yaml"))}


def list_shipped_experiments() -> list[dict[str, str]]:
    """Return the name, hypothesis and conditions of each shipped experiment."""
    experiments = [load_experiment(path) for path in find_shipped_experiments().values()]
    return [
        {"experiment": item.name, "hypothesis": item.hypothesis, "conditions": ", ".join(c.name for c in item.conditions)}
        for item in experiments
    ]


def find_experiment(name: str) -> Experiment:
    """Return the experiment of a file, or a shipped one by name. Raises ConfigError listing the shipped ones."""
    paths = find_shipped_experiments()
    if name in paths:
        return load_experiment(paths[name])
    if Path(name).is_file():
        return load_experiment(Path(name))
    raise ConfigError(f"no experiment {name!r}; name a file, or one of {', '.join(paths)}")


def set_context_levels(experiment: Experiment, context_levels: Sequence[str]) -> Experiment:
    """Return the experiment at other context levels, if any are given. Raises ConfigError if it sets levels itself."""
    if not context_levels:
        return experiment
    if experiment.compares_contexts:
        raise ConfigError(f"the experiment {experiment.name} sets context levels; leave --context out")
    plain = [condition.model_copy(update={"contexts": None}) for condition in experiment.conditions]
    return experiment.model_copy(update={"contexts": list(dict.fromkeys(context_levels)), "conditions": plain})


def _select_from_options(values: Mapping[str, Any], models: Models) -> SurveyRunSettings:
    """Return the options' settings. With `from_store` only named models and conditions; else baselines and context level 0 are defaults."""
    usual = {"models": [], "conditions": []} if values.get("from_store") else {"context_levels": ["0"]}
    settings = build_option_settings(SurveyRunSettings, {**usual, **values})
    levels = list(dict.fromkeys(settings.context_levels or ["0"])) if settings.conditions else []
    conditions = (BlueprintOptions.parse_condition(text, levels).condition for text in settings.conditions)
    names = [spec.name for spec in models.resolve(settings.models)]
    named = {"models": names, "conditions": list(dict.fromkeys(conditions)), "context_levels": levels}
    return settings.model_copy(update=named)


def _select_from_experiment(values: Mapping[str, Any], experiment: Experiment, models: Models) -> SurveyRunSettings:
    """Return the settings of an experiment; command-line options override them."""
    if values.get("conditions"):
        raise ConfigError("the experiment sets the conditions; give --condition or --experiment, not both")
    experiment = set_context_levels(experiment, values.get("context_levels", ()))
    selectors = values.get("models") or experiment.models
    if not selectors:
        raise ConfigError(f"the experiment {experiment.name} names no models: name some with --model")
    ways = resolve_asked_models(experiment, models, selectors)
    every = models.resolve([way.spec.name for way in ways])
    conditions = [way.options for way in ways if way.model == ways[0].model]
    defaults = experiment.model_dump(include={"questions", "sample_segments", "draws", "system_prompts"}, exclude_none=True)
    named = {
        "experiment": experiment.model_copy(update={"models": list(selectors)}),
        "models": [spec.name for spec in every],
        "models_by_condition": _list_models_by_condition(ways, every),
        "conditions": list(dict.fromkeys(options.condition for options in conditions)),
        "context_levels": list(dict.fromkeys(level for options in conditions for level in options.context_levels)),
    }
    return build_option_settings(SurveyRunSettings, {**defaults, **values, **named})


def _list_models_by_condition(ways: Sequence[ConditionModel], every: Sequence[ModelSpec]) -> dict[str, list[str]]:
    """Return model names by condition; empty if all models have all conditions."""
    variants: dict[str, set[str]] = {}
    for way in ways:
        variants.setdefault(way.options.condition, set()).add(way.spec.variant)
    names = {condition: [spec.name for spec in every if spec.variant in of] for condition, of in variants.items()}
    return names if any(len(of) < len(every) for of in names.values()) else {}


def _parse_limits(texts: tuple[str, ...], names: Collection[str], models: Models) -> dict[str, int]:
    limits = {}
    for text in texts:
        model, _, most = text.rpartition("=")
        if not model or not (most.isascii() and most.isdigit()):
            raise ConfigError(f"--limit {text!r} is not of the form MODEL=N, such as gpt-4.1-mini=100")
        if (name := name_of_asked(model, names, models)) is None:
            raise ConfigError(f"--limit {model}: not a model of this run; its models: {list_nearest(model, names)}")
        limits[name] = int(most)
    return limits
