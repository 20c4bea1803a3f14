"""The panel: what is asked again every night, and the settings of drift verdicts. Read from a YAML file, all of it optional:

models: [gpt-4.1-mini, "claude-haiku-4.5@max_tokens=512"]
rounds: [GD4]
context_levels: [0, all]
max_cost_usd: 5
drift:
  since: 2026-03-01
  severity: {watch: WARN, drift: ERROR}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from dtef_pipeline.asking.models import Budget, Models, ModelSpec, base_selector
from dtef_pipeline.documents import Document, Part, Place, read_document, spelled
from dtef_pipeline.drift.panel_section import names_models, require_known_names
from dtef_pipeline.drift.settings import DriftSettings
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.text.nearest import nearest

Scored = Callable[[], Iterable[tuple[str, str]]]
"""Finds the names and variants of all models with scores."""

_ASKED_AS_WRITTEN = {"context_levels", "conditions", "questions", "draws"}


class SurveyAsked(Part):
    """What is asked, on a night or once. Empty lists of rounds, segments and context levels stand for all there are."""

    models: Annotated[list[str], Field(min_length=1)] = ["baselines"]
    """Selectors, as `dtef run --model` takes them."""
    rounds: list[str] = []
    segments: list[str] = []
    context_levels: Annotated[list[str], BeforeValidator(ContextLevel.written)] = []
    conditions: Annotated[list[str], Field(min_length=1)] = [BlueprintOptions().condition]
    questions: Annotated[int, Field(ge=1)] | None = None
    draws: Annotated[int, Field(ge=1)] = 1
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
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
                    raise ConfigError(f"budgets.{selector}: allowed: a model of the panel: {', '.join(asked)}")
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
            raise ConfigError(f"rounds: {', '.join(absent)} not ingested; ingested: {there}")
        of_rounds = [key for key, own in zip(known, rounds, strict=True) if not self.rounds or own in self.rounds]
        segments = {split_partition_key(key)[1] for key in of_rounds}
        if absent := sorted(set(self.segments) - segments):
            raise ConfigError(
                f"segments: {', '.join(absent)} in none of the panel's rounds; their segments: {nearest(absent[0], segments)}"
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


class Panel(SurveyAsked):
    """What a night asks."""

    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    drift: DriftSettings = DriftSettings()
    rubric: dict[str, Any] = {}
    """What is asked of rubrics every night: read and checked by their own schedule."""
    qa: dict[str, Any] = {}
    """What is asked of questions with expected answers every night: likewise."""
    games: dict[str, Any] = {}
    """What is played every night: likewise."""

    @property
    def bounds(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, include={"max_cost_usd", "max_calls", "max_tokens"})


def load_panel(path: Path) -> Panel:
    """Read a panel file. Raises ConfigError with the file, the line, the field, what arrived and what is allowed."""
    return _read(path).checked(Panel)


def check_named(path: Path, models: Models, known: Sequence[str], scored: Scored, judges: Scored = tuple) -> Panel:
    """Read a panel file, and look for all that it names. `known`: the partitions there are; none: rounds and segments are not looked for.

    Raises ConfigError as `load_panel`, and for a model, a round or a segment that is not there, for the budget of a model not asked, and as
    `check_drift_names`.
    """
    document = _read(path)
    panel = document.checked(Panel)
    for number, selector in enumerate(panel.models):
        # Without a list in the file it is the default that is asked.
        with _located(document, ("models", number) if "models" in document.values else ()):
            models.resolve([selector])
    with _located(document, ("models",)):
        panel.asked(models)
    for selector, budget in panel.budgets.items():
        with _located(document, ("budgets", selector)):
            panel.model_copy(update={"budgets": {selector: budget}}).budgets_of(models)
    for field in ("rounds", "segments") if known else ():
        with _located(document, (field,)):
            panel.model_copy(update={"segments": []} if field == "rounds" else {}).partitions(known)
    _drift_names_known(document, panel, models, scored, judges)
    return panel


def check_drift_names(path: Path, models: Models, scored: Scored, judges: Scored = tuple) -> None:
    """Look for the models that a panel file names under `drift`: a date or a control that is no model would silently do nothing.

    `judges`: finds those that judge for other families, whose drift may have a date too. Raises ConfigError as `load_panel`, and with the line
    for a model that the panel does not ask and that has no scores, and for a control that is no language model.
    """
    document = _read(path)
    _drift_names_known(document, document.checked(Panel), models, scored, judges)


def _drift_names_known(document: Document, panel: Panel, models: Models, scored: Scored, judges: Scored) -> None:
    if names_models(panel.drift):
        asked = [(spec.name, spec.variant) for spec in panel.asked(models)]
        require_known_names(document, panel.drift, asked, scored, judges)


def _read(path: Path) -> Document:
    return read_document(path, "panel file", Panel.model_fields)


@contextmanager
def _located(document: Document, place: Place) -> Iterator[None]:
    """An error inside is one of this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{spelled(place)}: ")) from error
