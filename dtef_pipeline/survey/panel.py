"""The panel: what is asked of surveys again every night. Its keys stand at the top of the panel file, beside the sections of others:

models: [gpt-4.1-mini, "claude-haiku-4.5@max_tokens=512"]
rounds: [GD4]
context_levels: [0, all]
max_cost_usd: 5
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dtef_pipeline.asking.models import Budget, Models, ModelSpec, base_selector
from dtef_pipeline.documents import Document, Place, read_document, spelled
from dtef_pipeline.drift.panel_section import load_drift_settings, names_models, require_known_names
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import Door, panel_settings, settings_at
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.text.nearest import nearest

Scored = Callable[[], Iterable[tuple[str, str]]]
"""Finds the names and variants of all models with scores."""


def load_panel(path: Path) -> SurveySettings:
    """Read the survey's keys of a panel file. Raises ConfigError with file, line, field, what arrived and what is allowed."""
    return panel_settings(path, "", SurveySettings) or SurveySettings()


def resolve_panel(panel: SurveySettings, models: Models) -> tuple[ModelSpec, ...]:
    """The models of a panel or a manifest, at its temperature. Raises ConfigError for one that is not known."""
    return models.resolve([spec.name for selector in panel.models for spec in _at_temperature(panel, selector, models)])


def panel_budgets(panel: SurveySettings, models: Models) -> dict[str, Budget]:
    """Budgets by the names that models are asked by. Raises ConfigError for one of a model that is not asked."""
    asked = {spec.name: spec for spec in resolve_panel(panel, models)}
    found: dict[str, Budget] = {}
    for selector, budget in panel.budgets.items():
        for spec in _at_temperature(panel, selector, models):
            if spec.name not in asked:
                raise ConfigError(f"budgets.{selector}: allowed: a model that is asked: {', '.join(asked)}")
            bounds = {**spec.budget.model_dump(exclude_none=True), **budget.model_dump(exclude_none=True)}
            found[spec.name] = Budget.model_validate(bounds)
    return found


def with_named_models(panel: SurveySettings, models: Models) -> SurveySettings:
    """The settings with each model, and each budget, under the name that it is asked by. Raises ConfigError as `panel_budgets`."""
    names = [spec.name for spec in resolve_panel(panel, models)]
    return panel.model_copy(update={"models": names, "budgets": panel_budgets(panel, models)})


def _at_temperature(panel: SurveySettings, selector: str, models: Models) -> Iterator[ModelSpec]:
    """What a selector stands for. One that says a temperature keeps it, as do models that have or take none."""
    says_so = "temperature=" in selector.removeprefix(base_selector(selector))
    for spec in models.resolve([selector]):
        fixed = spec.is_computed or spec.is_local or spec.temperature is None
        if says_so or fixed or panel.temperature is None:
            yield spec
        else:
            yield from models.resolve([spec.name], {"temperature": panel.temperature})


def partitions_of_panel(panel: SurveySettings, known: Sequence[str]) -> list[str]:
    """The partitions of a panel among those `known`, in their order. Raises ConfigError for a round or a segment that is not there."""
    rounds = [split_partition_key(key)[0] for key in known]
    if absent := sorted(set(panel.rounds) - set(rounds)):
        there = ", ".join(sorted(set(rounds), key=round_order)) or "none"
        raise ConfigError(f"rounds: {_in_words(absent)} not ingested; ingested: {there}")
    of_rounds = [key for key, own in zip(known, rounds, strict=True) if not panel.rounds or own in panel.rounds]
    segments = {split_partition_key(key)[1] for key in of_rounds}
    if absent := sorted(set(panel.segments) - segments):
        raise ConfigError(
            f"segments: {_in_words(absent)} in none of the chosen rounds; their segments: {nearest(absent[0], segments)}"
        )
    return [key for key in of_rounds if not panel.segments or split_partition_key(key)[1] in panel.segments]


def _in_words(names: Sequence[str]) -> str:
    """Names as they arrived; those that would turn round the words beside them, spelled out."""
    return ", ".join(one if one.isprintable() else repr(one) for one in names)


def check_named(path: Path, models: Models, known: Sequence[str], scored: Scored, judges: Scored = tuple) -> SurveySettings:
    """Read a panel file, and look for all that it names. `known`: the partitions there are; none: rounds and segments are not looked for.

    Raises ConfigError as `load_panel`, and for a model, a round or a segment that is not there, for the budget of a model not asked, for
    a model under `drift` that is not asked and has no scores, and for a control that is no language model.
    """
    panel = load_panel(path)
    document = read_document(path, "panel file", settings_at(SurveySettings, Door.PANEL))
    for number, selector in enumerate(panel.models):
        # Without a list in the file it is the default that is asked.
        with _located(document, ("models", number) if "models" in document.values else ()):
            models.resolve([selector])
    with _located(document, ("models",)):
        resolve_panel(panel, models)
    for selector, budget in panel.budgets.items():
        with _located(document, ("budgets", selector)):
            panel_budgets(panel.model_copy(update={"budgets": {selector: budget}}), models)
    for field in ("rounds", "segments") if known else ():
        with _located(document, (field,)):
            partitions_of_panel(panel.model_copy(update={"segments": []} if field == "rounds" else {}), known)
    drift = load_drift_settings(path)
    if names_models(drift):
        asked = [(spec.name, spec.variant) for spec in resolve_panel(panel, models)]
        require_known_names(document, drift, asked, scored, judges)
    return panel


@contextmanager
def _located(document: Document, place: Place) -> Iterator[None]:
    """An error inside is one of this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{spelled(place)}: ")) from error
