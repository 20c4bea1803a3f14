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

from pydantic import Field, model_validator

from dtef_pipeline.asking.models import Models
from dtef_pipeline.documents import Document, Place, read_document, spelled
from dtef_pipeline.drift.panel_section import names_models, require_known_names
from dtef_pipeline.drift.settings import DriftSettings
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.plugged import plugged_points
from dtef_pipeline.survey.asked_rounds import SurveyAsked

Scored = Callable[[], Iterable[tuple[str, str]]]
"""Finds the names and variants of all models with scores."""


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
    preference: dict[str, Any] = {}
    """How votes become scores: likewise."""

    @model_validator(mode="before")
    @classmethod
    def _without_plugged(cls, values: Any) -> Any:
        """The sections of families of other packages are read and checked by their own schedules."""
        return {key: one for key, one in values.items() if key not in plugged_points()} if isinstance(values, dict) else values

    @property
    def bounds(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, include={"max_cost_usd", "max_calls", "max_tokens"})


def load_panel(path: Path) -> Panel:
    """Read a panel file. Raises ConfigError with the file, the line, the field, what arrived and what is allowed."""
    return _read(path).checked(Panel)


def check_named(path: Path, models: Models, known: Sequence[str], scored: Scored, judges: Scored = tuple) -> Panel:
    """Read a panel file, and look for all that it names. `known`: the partitions there are; none: rounds and segments are not looked for.

    Raises ConfigError as `load_panel`, and for a model, a round or a segment that is not there, for the budget of a model not asked, for
    a model under `drift` that is not asked and has no scores, and for a control that is no language model.
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


def _drift_names_known(document: Document, panel: Panel, models: Models, scored: Scored, judges: Scored) -> None:
    if names_models(panel.drift):
        asked = [(spec.name, spec.variant) for spec in panel.asked(models)]
        require_known_names(document, panel.drift, asked, scored, judges)


def _read(path: Path) -> Document:
    return read_document(path, "panel file", (*Panel.model_fields, *plugged_points()))


@contextmanager
def _located(document: Document, place: Place) -> Iterator[None]:
    """An error inside is one of this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{spelled(place)}: ")) from error
