"""The panel: the survey prompts that every night repeats.

Its keys are at the top of the panel file, next to the sections of other families:

    models: [gpt-4.1-mini, "claude-haiku-4.5@max_tokens=512"]
    rounds: [GD4]
    context_levels: [0, all]
    max_cost_usd: 5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dtef_pipeline.asking.models import Models
from dtef_pipeline.documents import Document, Place, format_path, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import Door, list_settings_at, load_panel_settings
from dtef_pipeline.survey.settings import SurveySettings, resolve_panel, resolve_panel_budgets, select_panel_partitions


def load_panel(path: Path) -> SurveySettings:
    """Read the survey's keys of a panel file. Raises ConfigError with file, line, field, value and allowed values."""
    return load_panel_settings(path, "", SurveySettings) or SurveySettings()


def check_named(path: Path, models: Models, keys: Sequence[str]) -> SurveySettings:
    """Read a panel file and check all names in it. `keys`: the existing partitions; if empty, rounds and segments are not checked.

    Raises ConfigError as `load_panel`, for an unknown model, round or segment, and for a budget of a model that is not in the panel.
    """
    panel = load_panel(path)
    document = read_document(path, "panel file", list_settings_at(SurveySettings, Door.PANEL))
    for number, selector in enumerate(panel.models):
        # Without a list in the file the default applies.
        with _locate_errors(document, ("models", number) if "models" in document.values else ()):
            models.resolve([selector])
    with _locate_errors(document, ("models",)):
        resolve_panel(panel, models)
    for selector, budget in panel.budgets.items():
        with _locate_errors(document, ("budgets", selector)):
            resolve_panel_budgets(panel.model_copy(update={"budgets": {selector: budget}}), models)
    for field in ("rounds", "segments") if keys else ():
        with _locate_errors(document, (field,)):
            select_panel_partitions(panel.model_copy(update={"segments": []} if field == "rounds" else {}), keys)
    return panel


@contextmanager
def _locate_errors(document: Document, place: Place) -> Iterator[None]:
    """Attribute errors inside the context to this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{format_path(place)}: ")) from error
