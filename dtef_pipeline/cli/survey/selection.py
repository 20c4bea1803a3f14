"""The options of `dtef run`, and what they select: which models are asked what, how, and within which budget."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dtef_pipeline.asking.models import Budget, Models, ModelSpec
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.experiments import Asked, Experiment, asked_models, load_experiment
from dtef_pipeline.survey.question_draw import Sample
from resources.failures import is_full
from resources.settings import shipped
from resources.warehouse import Warehouse

BUDGETS = ("max_cost_usd", "max_calls", "max_tokens")
_DRAW_OPTIONS = ("questions", "sample_segments")
"""The options behind the fields of Sample."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options as they were given; None or empty: not given."""

    rounds: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    questions: int | None = None
    sample_segments: int | None = None
    draws: int | None = None
    snapshot: str = "base"
    limits: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    max_tokens: tuple[str, ...] = ()
    experiment: str | None = None
    metric: str = "js"
    first: str = "ask"
    """The stage that the run begins with: ingest or ask."""
    no_roll_ups: bool = False
    from_store: bool = False


@dataclass(frozen=True)
class Selection:
    """What is asked: checked, every model resolved and every condition spelled."""

    rounds: tuple[str, ...]
    segments: tuple[str, ...]
    conditions: tuple[BlueprintOptions, ...]
    models: tuple[ModelSpec, ...]
    models_of: Mapping[str, tuple[ModelSpec, ...]]
    """For a condition, the models asked in it instead of all."""
    sample: Sample
    draws: int
    snapshot: str
    limits: Mapping[str, int]
    budget: Budget
    """Of the whole run."""
    budgets: Mapping[str, Budget]
    """By model name, given on the command line: in place of the models file's."""
    system_prompts: Mapping[str, str] = field(default_factory=dict)
    experiment: Experiment | None = None
    asked: tuple[Asked, ...] = ()
    """Of an experiment: every model in every condition."""

    @cached_property
    def context_levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(level for options in self.conditions for level in options.context_levels))

    @cached_property
    def spelled(self) -> tuple[str, ...]:
        """The conditions, each once."""
        return tuple(dict.fromkeys(options.condition for options in self.conditions))

    @cached_property
    def blueprints(self) -> tuple[BlueprintOptions, ...]:
        """How prompts are made: every condition at every context level."""
        first = {options.condition: options for options in reversed(self.conditions)}
        return tuple(replace(first[condition], context_levels=self.context_levels) for condition in self.spelled)

    def conditions_of(self, model: ModelSpec) -> list[str]:
        """Where the model is asked."""
        return [condition for condition in self.spelled if model in self.models_of.get(condition, self.models)]

    def config(self, metric: str) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        of_snapshot = {"snapshot": self.snapshot}
        how = {"conditions": list(self.spelled), "context_levels": list(self.context_levels)}
        predictions = {
            **how,
            "models": [model.name for model in self.models],
            "models_of": {condition: [model.name for model in models] for condition, models in self.models_of.items()},
            "draws": self.draws,
            "limits": dict(self.limits),
            "budgets": {name: budget.model_dump(exclude_none=True) for name, budget in self.budgets.items()},
            **self.budget.model_dump(exclude_none=True),
            **{name: number for name, number in zip(_DRAW_OPTIONS, self.sample, strict=True) if number},
            **of_snapshot,
        }
        return {
            "blueprints": {**how, "system_prompts": dict(self.system_prompts)},
            "predictions": predictions,
            "scores": {"metric": metric, **of_snapshot},
            "segment_results": of_snapshot,
        }


def selection(options: RunOptions, models: Models) -> Selection:
    """What the options select.

    Raises ConfigError for options that exclude each other, for what is not known (a model, a condition, a budget, an experiment), and for a
    snapshot that no label allows.
    """
    snapshot = require_safe(options.snapshot)
    experiment = find_experiment(options.experiment) if options.experiment else None
    rounds = options.rounds or tuple(round_id.upper() for round_id in (experiment.rounds if experiment else ()))
    if not rounds:
        raise ConfigError("no round: allowed: --round ROUND, once or several times, or an experiment with rounds")
    chosen = _of_experiment(options, experiment, models) if experiment else _of_options(options, models)
    budget, budgets = _budgets(options, models, chosen["models"])
    return Selection(
        rounds=tuple(dict.fromkeys(rounds)),
        segments=options.segments,
        snapshot=snapshot,
        limits=_limits(options.limits, models, chosen["models"]),
        budget=budget,
        budgets=budgets,
        **chosen,
    )


def partition_keys(warehouse: Warehouse, rounds: Iterable[str], segments: tuple[str, ...]) -> list[str]:
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


def with_contexts(experiment: Experiment, contexts: tuple[str, ...]) -> Experiment:
    """The experiment at other context levels, if any are given."""
    if not contexts:
        return experiment
    if experiment.compares_contexts:
        raise ConfigError(
            f"--context with the experiment {experiment.name}, which compares context levels; allowed: without it"
        )
    plain = [condition.model_copy(update={"contexts": None}) for condition in experiment.conditions]
    return experiment.model_copy(update={"contexts": _context_levels(contexts), "conditions": plain})


def _of_options(options: RunOptions, models: Models) -> dict[str, Any]:
    return {
        "conditions": _conditions(options),
        "models": models.resolve(options.models or (() if options.from_store else ("baselines",))),
        "models_of": {},
        "sample": Sample(options.questions, options.sample_segments),
        "draws": options.draws or 1,
    }


def _of_experiment(options: RunOptions, experiment: Experiment, models: Models) -> dict[str, Any]:
    """What an experiment asks; options of the command line take the place of its own."""
    if options.conditions:
        raise ConfigError(
            "--condition with --experiment: its conditions say how questions are asked; allowed: one or the other"
        )
    experiment = with_contexts(experiment, options.contexts)
    selectors = options.models or tuple(experiment.models)
    if not selectors:
        raise ConfigError(f"the experiment {experiment.name} names no models; allowed: --model MODEL, once or several times")
    asked = asked_models(experiment, models, selectors)
    every = models.resolve([one.spec.name for one in asked])
    variants = {
        condition: {one.spec.variant for one in asked if one.options.condition == condition}
        for condition in dict.fromkeys(one.options.condition for one in asked)
    }
    models_of = {condition: tuple(spec for spec in every if spec.variant in of) for condition, of in variants.items()}
    return {
        "conditions": tuple(one.options for one in asked if one.model == asked[0].model),
        "models": every,
        "models_of": models_of if any(len(of) < len(every) for of in models_of.values()) else {},
        "sample": Sample(*(getattr(options, name) or getattr(experiment, name) for name in _DRAW_OPTIONS)),
        "draws": options.draws or experiment.draws,
        "system_prompts": experiment.system_prompts,
        "experiment": experiment,
        "asked": asked,
    }


def _context_levels(contexts: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(level for given in contexts or ("0",) for level in given.replace(",", " ").split()))


def _conditions(options: RunOptions) -> tuple[BlueprintOptions, ...]:
    levels = _context_levels(options.contexts)
    if not options.conditions:
        return () if options.from_store else (BlueprintOptions(tuple(levels)),)
    made = [BlueprintOptions.of_condition(text, levels) for text in options.conditions]
    return tuple({one.condition: one for one in made}.values())


def _limits(given: tuple[str, ...], models: Models, asked: Iterable[ModelSpec]) -> dict[str, int]:
    limits = {}
    for text in given:
        name, _, most = text.rpartition("=")
        if not name or not (most.isascii() and most.isdigit()):
            raise ConfigError(f"limit {text!r}: allowed: MODEL=N, such as gpt-4.1-mini=100")
        limits[_name_of("limit", name, models, asked)] = int(most)
    return limits


def _budgets(options: RunOptions, models: Models, asked: Iterable[ModelSpec]) -> tuple[Budget, dict[str, Budget]]:
    """The run's budget, and those of models by name."""
    given: dict[str, dict[str, Any]] = {}
    for bound in BUDGETS:
        for text in getattr(options, bound):
            model, _, value = text.rpartition("=")
            name = _name_of(_flag(bound), model, models, asked) if model else ""
            if bound in given.setdefault(name, {}):
                raise ConfigError(
                    f"{_flag(bound)} is given twice for {name or 'the run'}; allowed: once for the run, once for a model"
                )
            given[name][bound] = _amount(bound, text, value)
    run = Budget(**given.pop("", {}))
    own = {spec.name: spec.budget.model_dump(exclude_none=True) for spec in asked}
    return run, {name: Budget(**{**own[name], **bounds}) for name, bounds in given.items()}


def _amount(bound: str, text: str, value: str) -> Any:
    try:
        return getattr(Budget.model_validate({bound: value.replace("_", "")}), bound)
    except ValidationError as error:
        what = "an amount from 0" if bound == "max_cost_usd" else "a whole number from 0"
        raise ConfigError(f"{_flag(bound)} {text!r}: allowed: {what}, or MODEL= and such a number") from error


def _flag(bound: str) -> str:
    return f"--{bound.replace('_', '-')}"


def _name_of(what: str, given: str, models: Models, asked: Iterable[ModelSpec]) -> str:
    """The name of a model of the run, whichever way its settings are written."""
    names = [spec.name for spec in asked]
    if given in names:
        return given
    try:
        found = [spec.name for spec in models.resolve([given])]
    except ConfigError:
        found = []
    if len(found) != 1 or found[0] not in names:
        raise ConfigError(f"{what} for {given}: allowed: a model of this run: {', '.join(names)}")
    return found[0]
