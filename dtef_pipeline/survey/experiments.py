"""Experiments: two or more conditions, compared on the same cells. They are read from YAML files:

    name: reasoning
    hypothesis: A model that reasons before it answers comes closer to the observed distribution.
    conditions:
      - {name: standard, condition: distribution/attribute-label}
      - {name: reasoned, reasoning: cot, settings: {temperature: 0.7}}
    models: [gpt-4.1-mini]

The others are compared with the first condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.selectors import SAMPLING
from dtef_pipeline.documents import Document, Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.blueprint.options import ONLY_WITH, BlueprintOptions, ContextLevel
from dtef_pipeline.survey.settings import Drawn

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_Levels = Annotated[list[str], BeforeValidator(ContextLevel.convert_numbers), Field(min_length=1)]


class Condition(Part):
    """A condition, given either as `condition` or by the fields of `BlueprintOptions`."""

    name: _Name
    condition: str | None = None
    task: str | None = None
    format: str | None = None
    reasoning: str | None = None
    structured: bool | None = None
    option_order: str | None = None
    profile: str | None = None
    system: str | None = None
    batch_size: int | None = None
    individuals: int | None = None
    selection: str | None = None
    seed: int | None = None
    show_n: bool | None = None
    token_budget: int | None = None
    answer_reserve: int | None = None
    settings: dict[str, Any] = {}
    """Sampling parameters that models get in this condition; baselines, which have none, do not."""
    contexts: _Levels | None = None
    """Context levels, in place of the experiment's."""

    def options(self, context_levels: Sequence[str], system_prompts: Mapping[str, str]) -> BlueprintOptions:
        fields = self.model_dump(exclude={"name", "condition", "settings", "contexts"}, exclude_none=True)
        if self.condition is None:
            text = system_prompts.get(self.system or "", "")
            options = BlueprintOptions(tuple(context_levels), **fields, system_text=text)
            _refuse_idle(fields, options)
            return options
        if fields:
            raise ConfigError(f"condition and {', '.join(fields)} are given; allowed: either condition or single fields")
        return BlueprintOptions.parse_condition(self.condition, context_levels, system_prompts)


class Experiment(Part):
    """The contents of an experiment file."""

    name: _Name
    hypothesis: Annotated[str, Field(min_length=1)]
    conditions: Annotated[list[Condition], Field(min_length=2)]
    models: list[str] = []
    """Selectors, as `dtef run --model` takes them."""
    contexts: _Levels = ["0"]
    questions: Drawn = None
    sample_segments: Drawn = None
    draws: Draws = 1
    rounds: list[str] = []
    system_prompts: dict[str, str] = {}
    """Words of system prompts that are not shipped, by id."""

    @property
    def compares_contexts(self) -> bool:
        """Whether the conditions differ only in the context that they show."""
        return any(condition.contexts is not None and condition.contexts != self.contexts for condition in self.conditions)

    def options(self, condition: Condition) -> BlueprintOptions:
        return condition.options(condition.contexts or self.contexts, self.system_prompts)


@dataclass(frozen=True, slots=True)
class ConditionModel:
    """A model in a condition of an experiment."""

    model: str
    """The model as it is called without the settings of the condition."""
    name: str
    """Name of the condition in its experiment."""
    options: BlueprintOptions
    spec: ModelSpec


def resolve_asked_models(experiment: Experiment, models: Models, selectors: Sequence[str]) -> tuple[ConditionModel, ...]:
    """Return every model in every condition: model by model, conditions in the order of the file.

    Raises ConfigError if a model is unknown or cannot have a condition's settings, or if a language model (not a baseline) would get the
    same requests in two conditions.
    """
    condition_models = tuple(_iterate_asked(experiment, models, selectors))
    first: dict[tuple[str, str, str, tuple[str, ...]], str] = {}
    for entry in condition_models:
        first_name = first.setdefault(
            (entry.model, entry.spec.variant, _format_effect(entry.options), entry.options.context_levels), entry.name
        )
        if first_name != entry.name and not entry.spec.is_computed:
            raise ConfigError(
                f"experiment {experiment.name!r}: {entry.model} gets the same requests in the conditions {first_name!r} and "
                f"{entry.name!r}: allowed: other settings of the model or of the prompt (without context questions, options about them "
                "change nothing)"
            )
    return condition_models


def list_each_asked_once(experiment: Experiment, names: Iterable[tuple[Models, str]]) -> list[tuple[ConditionModel, ...]]:
    """Return every model in every condition, once and under the first of its names. `names`: each with the models to which it belongs.

    Models that are no longer known, or cannot have the settings of the conditions, are left out.
    """
    by_variants: dict[tuple[str, ...], tuple[ConditionModel, ...]] = {}
    for models, name in names:
        with suppress(ConfigError):
            condition_models = resolve_asked_models(experiment, models, [name])
            by_variants.setdefault(tuple(entry.spec.variant for entry in condition_models), condition_models)
    return list(by_variants.values())


def _format_effect(options: BlueprintOptions) -> str:
    """Return the condition without the options that have no effect if no context is shown."""
    if set(options.context_levels) != {"0"}:
        return options.condition
    usual = BlueprintOptions()
    return replace(options, format=usual.format, show_n=usual.show_n, selection=usual.selection, seed=usual.seed).condition


def _refuse_idle(fields: Mapping[str, Any], options: BlueprintOptions) -> None:
    """Raise ConfigError for fields that would silently have no effect."""
    for name, (partner, value) in ONLY_WITH.items():
        if name in fields and getattr(options, partner) != value:
            raise ConfigError(f"{name}: {fields[name]} has no effect; allowed: with {partner}: {value}")


def _iterate_asked(experiment: Experiment, models: Models, selectors: Sequence[str]) -> Iterator[ConditionModel]:
    for base in models.resolve(selectors):
        for condition in experiment.conditions:
            try:
                (spec,) = models.resolve([base.name], condition.settings)
            except ConfigError as error:
                raise ConfigError(f"experiment {experiment.name!r}: condition {condition.name!r}: {error}") from error
            yield ConditionModel(base.name, condition.name, experiment.options(condition), spec)


def load_experiment(path: Path) -> Experiment:
    """Read an experiment file. Raises ConfigError with file, line, condition, field, value and allowed values."""
    document = read_document(path, "experiment file", Experiment.model_fields, {"conditions": "condition"})
    experiment = document.validate_as(Experiment)
    _check(experiment, document)
    return experiment


def _check(experiment: Experiment, document: Document) -> None:
    """Check what fields cannot: spellings, settings, and that the conditions differ in a way that a run supports."""
    names: dict[tuple[str, str, tuple[str, ...]], str] = {}
    for number, condition in enumerate(experiment.conditions):
        place = ("conditions", number)
        try:
            options = experiment.options(condition)
            _check_settings(condition.settings)
        except ConfigError as error:
            raise document.error(place, str(error)) from error
        settings = ",".join(f"{key}={value}" for key, value in sorted(condition.settings.items()))
        first_name = names.setdefault((options.condition, settings, options.context_levels), condition.name)
        if first_name != condition.name or [c.name for c in experiment.conditions].count(condition.name) > 1:
            raise document.error(place, f"repeats {first_name!r}; give every condition its own name and settings")
    levels = {options_levels for _, _, options_levels in names}
    if len(levels) > 1 and len({(spelling, settings) for spelling, settings, _ in names}) > 1:
        raise document.error(("contexts",), "conditions that differ in contexts must be equal otherwise")
    if len({len(of) for of in levels}) > 1:
        raise document.error(
            ("contexts",),
            "every condition needs the same number of context levels, because they are compared in order; got "
            f"{'; '.join(', '.join(of) for of in sorted(levels))}",
        )


def _check_settings(settings: Mapping[str, Any]) -> None:
    if unknown := [key for key in settings if key not in SAMPLING]:
        raise ConfigError(f"settings: unknown {', '.join(map(repr, unknown))}; allowed: {', '.join(SAMPLING)}")
    any_model = Models(specs={"any": ModelSpec(name="any", model="any/model")}, collections={})
    any_model.resolve(["any"], settings)
