"""The options of `dtef run`, and what they select: which models are asked what, how, and within which budget."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.cli.role_budgets import budgets_given, name_of_asked, owned_budgets
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import settings_of
from dtef_pipeline.identity import partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.experiments import Asked, Experiment, asked_models, load_experiment
from dtef_pipeline.survey.settings import SurveySettings
from resources.failures import is_full
from resources.settings import shipped
from resources.warehouse import Warehouse

BUDGETS = ("max_cost_usd", "max_calls", "max_tokens")


class SurveyFlags(NamedTuple):
    """What `dtef run` is given beside the settings."""

    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    max_tokens: tuple[str, ...] = ()
    """Budgets, [MODEL=]AMOUNT each."""
    limits: tuple[str, ...] = ()
    """MODEL=N each."""
    experiment: str | None = None
    first: str = "ask"
    """The stage that the run begins with: ingest or ask."""
    no_roll_ups: bool = False


@dataclass(frozen=True)
class Selection:
    """What is asked."""

    settings: SurveySettings
    """With every model, budget and limit under the name of a model, and every condition spelled."""
    models: tuple[ModelSpec, ...]
    conditions: tuple[BlueprintOptions, ...]
    """Of an experiment, one for each of its conditions."""
    experiment: Experiment | None = None
    asked: tuple[Asked, ...] = ()
    """Of an experiment: every model in every condition."""

    @cached_property
    def blueprints(self) -> tuple[BlueprintOptions, ...]:
        """How prompts are made: every condition at every context level."""
        first = {options.condition: options for options in reversed(self.conditions)}
        levels = tuple(self.settings.context_levels)
        return tuple(replace(first[condition], context_levels=levels) for condition in self.settings.conditions)

    def conditions_of(self, model: ModelSpec) -> list[str]:
        """Where the model is asked."""
        names = [one.name for one in self.models]
        return [one for one in self.settings.conditions if model.name in self.settings.models_of.get(one, names)]


def selection(given: Mapping[str, Any], flags: SurveyFlags, models: Models) -> Selection:
    """What the settings and flags that were given select.

    Raises ConfigError for options that exclude each other, and for what is not known: a model, a condition, a budget, an experiment.
    """
    experiment = find_experiment(flags.experiment) if flags.experiment else None
    rounds = given.get("rounds") or [round_id.upper() for round_id in (experiment.rounds if experiment else ())]
    if not rounds:
        raise ConfigError("no round: allowed: --round ROUND, once or several times, or an experiment with rounds")
    given = {**given, "rounds": list(dict.fromkeys(rounds))}
    chosen = _of_experiment(given, experiment, models) if experiment else _of_options(given, models)
    names = [spec.name for spec in chosen.models]
    bounds = {**_budgets(flags, chosen.models, models), "limits": _limits(flags.limits, names, models)}
    return replace(chosen, settings=settings_of(SurveySettings, chosen.settings.model_dump(exclude_unset=True) | bounds))


def partition_keys(warehouse: Warehouse, rounds: Iterable[str], segments: Sequence[str]) -> list[str]:
    """The partitions of the rounds, or of their segments that are named. Raises ConfigError for a round or a segment that is not there."""
    keys: list[str] = []
    found: set[str] = set()
    by_round = {round_id: warehouse.values("survey_responses", "segment", round=round_id) for round_id in rounds}
    for round_id, there in by_round.items():
        if not there:
            ingested = ", ".join(warehouse.values("survey_responses", "round")) or "none"
            full = (
                f"; the disk of {warehouse.root} is full: make room first"
                if warehouse.is_local and is_full(warehouse.root)
                else ""
            )
            raise ConfigError(f"round {round_id} is not ingested; ingested: {ingested}; `dtef add PATH` ingests it{full}")
        wanted = [segment for segment in there if not segments or segment in segments]
        found.update(wanted)
        keys += [partition_key(round_id, segment) for segment in wanted]
    if absent := [segment for segment in segments if segment not in found]:
        known = sorted({segment for there in by_round.values() for segment in there})
        raise ConfigError(f"no segment {', '.join(absent)} in {', '.join(rounds)}; segments: {', '.join(known)}")
    return keys


def shipped_experiments() -> dict[str, Path]:
    return {path.stem: path for path in sorted(shipped("experiments").glob("*.yaml"))}


def shipped_experiment_rows() -> list[dict[str, str]]:
    """The experiments that are shipped: name, hypothesis and conditions of each."""
    loaded = [load_experiment(path) for path in shipped_experiments().values()]
    return [
        {"experiment": one.name, "hypothesis": one.hypothesis, "conditions": ", ".join(c.name for c in one.conditions)}
        for one in loaded
    ]


def find_experiment(given: str) -> Experiment:
    """The experiment of a file, or a shipped one by its name. Raises ConfigError naming those that are shipped."""
    known = shipped_experiments()
    if given in known:
        return load_experiment(known[given])
    if Path(given).is_file():
        return load_experiment(Path(given))
    raise ConfigError(f"no experiment {given!r}; allowed: a file, or one of {', '.join(known)}")


def with_contexts(experiment: Experiment, context_levels: Sequence[str]) -> Experiment:
    """The experiment at other context levels, if any are given."""
    if not context_levels:
        return experiment
    if experiment.compares_contexts:
        raise ConfigError(
            f"--context with the experiment {experiment.name}, which compares context levels; allowed: without it"
        )
    plain = [condition.model_copy(update={"contexts": None}) for condition in experiment.conditions]
    return experiment.model_copy(update={"contexts": list(dict.fromkeys(context_levels)), "conditions": plain})


def _of_options(given: Mapping[str, Any], models: Models) -> Selection:
    """From the store, only what is named; otherwise baselines and prompts without context questions are as usual."""
    usual = {"models": [], "conditions": []} if given.get("from_store") else {"context_levels": ["0"]}
    settings = settings_of(SurveySettings, {**usual, **given})
    levels = list(dict.fromkeys(settings.context_levels or ["0"])) if settings.conditions else []
    conditions = {one.condition: one for text in settings.conditions for one in [BlueprintOptions.of_condition(text, levels)]}
    asked = models.resolve(settings.models)
    named = {"models": [spec.name for spec in asked], "conditions": list(conditions), "context_levels": levels}
    return Selection(settings.model_copy(update=named), asked, tuple(conditions.values()))


def _of_experiment(given: Mapping[str, Any], experiment: Experiment, models: Models) -> Selection:
    """What an experiment asks; options of the command line take the place of its own."""
    if given.get("conditions"):
        raise ConfigError(
            "--condition with --experiment: its conditions say how questions are asked; allowed: one or the other"
        )
    experiment = with_contexts(experiment, given.get("context_levels", ()))
    selectors = given.get("models") or experiment.models
    if not selectors:
        raise ConfigError(f"the experiment {experiment.name} names no models; allowed: --model MODEL, once or several times")
    asked = asked_models(experiment, models, selectors)
    every = models.resolve([one.spec.name for one in asked])
    conditions = tuple(one.options for one in asked if one.model == asked[0].model)
    own = experiment.model_dump(include={"questions", "sample_segments", "draws", "system_prompts"}, exclude_none=True)
    levels = dict.fromkeys(level for options in conditions for level in options.context_levels)
    named = {
        "models": [spec.name for spec in every],
        "models_of": _models_of(asked, every),
        "conditions": list(dict.fromkeys(options.condition for options in conditions)),
        "context_levels": list(levels),
    }
    return Selection(settings_of(SurveySettings, {**own, **given, **named}), every, conditions, experiment, asked)


def _models_of(asked: Sequence[Asked], every: Sequence[ModelSpec]) -> dict[str, list[str]]:
    """By condition the names of the models asked in it; nothing where all are asked in all."""
    variants: dict[str, set[str]] = {}
    for one in asked:
        variants.setdefault(one.options.condition, set()).add(one.spec.variant)
    names = {condition: [spec.name for spec in every if spec.variant in of] for condition, of in variants.items()}
    return names if any(len(of) < len(every) for of in names.values()) else {}


def _limits(given: tuple[str, ...], asked: Collection[str], models: Models) -> dict[str, int]:
    limits = {}
    for text in given:
        model, _, most = text.rpartition("=")
        if not model or not (most.isascii() and most.isdigit()):
            raise ConfigError(f"limit {text!r}: allowed: MODEL=N, such as gpt-4.1-mini=100")
        if (name := name_of_asked(model, asked, models)) is None:
            raise ConfigError(f"limit for {model}: allowed: a model of this run: {', '.join(asked)}")
        limits[name] = int(most)
    return limits


def _budgets(flags: SurveyFlags, asked: Sequence[ModelSpec], models: Models) -> dict[str, Any]:
    """The run's budget, and those of models by name, as settings. Bounds of a model's file that were not given stay."""
    own = {spec.name: spec.budget.model_dump(exclude_none=True) for spec in asked}
    found = budgets_given(*(owned_budgets(getattr(flags, bound), own, models) for bound in BUDGETS))
    return {**found, "budgets": {name: {**own[name], **bounds} for name, bounds in found["budgets"].items()}}
