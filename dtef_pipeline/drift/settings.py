"""The section `drift` of a panel file: by which settings verdicts are given, and who hears of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.documents import Document, Part, read_document
from dtef_pipeline.drift.options import ALL_OTHERS, WatchOptions
from dtef_pipeline.text.name_matching import list_nearest

DRIFT_SECTION = "drift"
Named = Sequence[tuple[str, str]]
"""Names and variants of models."""


def load_drift_settings(path: Path) -> DriftSettings:
    """The section of a panel file; its defaults where it has none. Raises ConfigError with file, line, what arrived and what is allowed."""
    return read_panel(path).section(DRIFT_SECTION, DriftSettings) or DriftSettings()


def require_known_names(document: Document, drift: DriftSettings, models: Named, judges: Named) -> None:
    """Look for the models that the section names: a date or a control that is not a model would silently do nothing.

    `models`: those of the panel and those with scores; `judges`: those of the panel, and those that were shown stored answers again. Raises
    ConfigError with the line for a date of none of them, and for a control that is not a language model.
    """
    ending = "and without scores; models of the panel or with scores"
    if absent := drift.absent([*models, *judges]):
        names = list_nearest(absent[0], {name for name, _ in (*models, *judges)})
        raise document.error((DRIFT_SECTION, "since", absent[0]), f"not a model of the panel, {ending}: {names}")
    if absent := drift.find_absent_controls(models):
        names = list_nearest(absent[0], {name for name, variant in models if not is_computed(variant)})
        place = (DRIFT_SECTION, "control", drift.control.index(absent[0]))
        raise document.error(place, f"{absent[0]!r}: not a language model of the panel, {ending}: {names}")


def read_panel(path: Path) -> Document:
    """The file, of which other sections are not looked at."""
    return read_document(path, "panel file", [DRIFT_SECTION])


Level = Literal["WARN", "ERROR", "OFF"]


def _convert_level(value: Any) -> Any:
    """YAML takes a bare OFF for false."""
    return "OFF" if value is False else value


class Severity(Part):
    """How loud a check is about a verdict: OFF names it and passes."""

    watch: Annotated[Level, BeforeValidator(_convert_level)] = "WARN"
    drift: Annotated[Level, BeforeValidator(_convert_level)] = "ERROR"


class DriftSettings(WatchOptions):
    """By which settings a series gets its verdict, and who hears of it."""

    severity: Severity = Severity()
    """Severity of the `no_drift` checks by verdict: WARN, ERROR or OFF."""
    tell: list[Literal["watch", "drift"]] = ["drift"]
    """Verdicts that are sent to the webhook: drift, watch. Sooner or later most series get `watch`, whether or not they changed."""

    @property
    def names_models(self) -> bool:
        """Whether dates or controls are of models by name."""
        return bool(self.control or set(self.since) - {ALL_OTHERS})
