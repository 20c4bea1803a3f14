"""What is asked of rounds, on a night or once: the settings that a panel file and other manifests share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.asking.models import Budget, Models, ModelSpec, base_selector
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.text.nearest import nearest

_ASKED_AS_WRITTEN = {"context_levels", "conditions", "questions", "sample_segments", "draws"}


class SurveyAsked(Part):
    """What is asked, on a night or once. Empty lists of rounds, segments and context levels stand for all there are."""

    models: Annotated[list[str], Field(min_length=1)] = ["baselines"]
    """Selectors, as `dtef run --model` takes them."""
    rounds: list[str] = []
    segments: list[str] = []
    context_levels: Annotated[list[str], BeforeValidator(ContextLevel.written)] = []
    conditions: Annotated[list[str], Field(min_length=1)] = [BlueprintOptions().condition]
    questions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """So many of each round, drawn over its batteries."""
    sample_segments: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Each question of only so many segments of the round, drawn over its attributes."""
    draws: Draws = 1
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """Of every language model that takes one; None: each model's own."""
    budgets: dict[str, Budget] = {}
    """By selector, what a run may use of a model, over the bounds of the models file."""

    @field_validator("context_levels")
    @classmethod
    def _are_levels(cls, levels: list[str]) -> list[str]:
        try:
            return [str(ContextLevel(level)) for level in levels]
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("conditions")
    @classmethod
    def _spelled(cls, conditions: list[str]) -> list[str]:
        """In the one spelling that blueprints have. The words of an experiment's own system prompts are not known here."""
        try:
            return [one if "+system=" in one else BlueprintOptions.of_condition(one).condition for one in conditions]
        except ConfigError as error:
            raise ValueError(str(error)) from None

    def asked(self, models: Models) -> tuple[ModelSpec, ...]:
        """The models of a night, at the panel's temperature. Raises ConfigError for one that is not known."""
        return models.resolve([spec.name for selector in self.models for spec in self._at_temperature(selector, models)])

    def budgets_of(self, models: Models) -> dict[str, Budget]:
        """Budgets by the names of the models of a night. Raises ConfigError for one of a model that is not asked."""
        asked = {spec.name: spec for spec in self.asked(models)}
        found: dict[str, Budget] = {}
        for selector, budget in self.budgets.items():
            for spec in self._at_temperature(selector, models):
                if spec.name not in asked:
                    raise ConfigError(f"budgets.{selector}: allowed: a model that is asked: {', '.join(asked)}")
                bounds = {**spec.budget.model_dump(exclude_none=True), **budget.model_dump(exclude_none=True)}
                found[spec.name] = Budget.model_validate(bounds)
        return found

    def _at_temperature(self, selector: str, models: Models) -> Iterator[ModelSpec]:
        """What a selector stands for. One that says a temperature keeps it, as do models that have or take none."""
        says_so = "temperature=" in selector.removeprefix(base_selector(selector))
        for spec in models.resolve([selector]):
            fixed = spec.is_computed or spec.is_local or spec.temperature is None
            if says_so or fixed or self.temperature is None:
                yield spec
            else:
                yield from models.resolve([spec.name], {"temperature": self.temperature})

    def partitions(self, known: Sequence[str]) -> list[str]:
        """The partitions of the panel among those `known`, in their order. Raises ConfigError for a round or a segment that is not there."""
        rounds = [split_partition_key(key)[0] for key in known]
        if absent := sorted(set(self.rounds) - set(rounds)):
            there = ", ".join(sorted(set(rounds), key=round_order)) or "none"
            raise ConfigError(f"rounds: {_in_words(absent)} not ingested; ingested: {there}")
        of_rounds = [key for key, own in zip(known, rounds, strict=True) if not self.rounds or own in self.rounds]
        segments = {split_partition_key(key)[1] for key in of_rounds}
        if absent := sorted(set(self.segments) - segments):
            raise ConfigError(
                f"segments: {_in_words(absent)} in none of the chosen rounds; their segments: {nearest(absent[0], segments)}"
            )
        return [key for key in of_rounds if not self.segments or split_partition_key(key)[1] in self.segments]

    @property
    def bounds(self) -> dict[str, Any]:
        """What the run may use, by the names of the stage's settings."""
        return {}

    def run_config(self, models: Models, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration by stage, from predictions on. Raises ConfigError for a model that is not known."""
        asks = self.model_dump(exclude_none=True, include=_ASKED_AS_WRITTEN)
        budgets = {name: budget.model_dump(exclude_none=True) for name, budget in self.budgets_of(models).items()}
        names, of_snapshot = [spec.name for spec in self.asked(models)], {"snapshot": snapshot}
        return {
            "predictions": {**asks, **self.bounds, "models": names, "budgets": budgets, **of_snapshot},
            "scores": of_snapshot,
            "segment_results": of_snapshot,
        }


def _in_words(names: Sequence[str]) -> str:
    """Names as they arrived; those that would turn round the words beside them, spelled out."""
    return ", ".join(one if one.isprintable() else repr(one) for one in names)
