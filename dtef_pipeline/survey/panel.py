"""The panel: what is asked of surveys again every night. Its keys stand at the top of the panel file, beside the sections of others:

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
    """Read the survey's keys of a panel file. Raises ConfigError with file, line, field, what arrived and what is allowed."""
    return load_panel_settings(path, "", SurveySettings) or SurveySettings()


def check_named(path: Path, models: Models, keys: Sequence[str]) -> SurveySettings:
    """Read a panel file, and look for all that it names. `keys`: the partitions there are; none: rounds and segments are not looked for.

    Raises ConfigError as `load_panel`, and for a model, a round or a segment that is not there, and for the budget of a model not asked.
    """
    panel = load_panel(path)
    document = read_document(path, "panel file", list_settings_at(SurveySettings, Door.PANEL))
    for number, selector in enumerate(panel.models):
        # Without a list in the file it is the default that is asked.
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
    """An error inside is one of this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{format_path(place)}: ")) from error
