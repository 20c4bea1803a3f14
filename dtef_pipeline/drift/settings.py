"""The section `drift` of a panel file: the settings of verdicts and of their notification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dtef_pipeline.asking.models import is_computed, strip_settings
from dtef_pipeline.documents import Document, Part, read_document
from dtef_pipeline.drift.evidence import ALPHA, BASELINE
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.name_matching import list_nearest

ALL_OTHERS = ""
"""Key in `since` of the date for all unnamed models."""


def _read_dates(value: Any) -> Any:
    """Convert a date, or dates by model, to text: YAML reads 2026-03-01 as a date."""
    by_model = value if isinstance(value, dict) else {ALL_OTHERS: value}
    for model, day in by_model.items():
        if not isinstance(day, date | str):
            text = f"{model}: {day!r}" if model else repr(day)
            raise ValueError(f"got {text}; allowed: a date such as 2026-03-01, or a mapping of models to dates")
    return {model: day.isoformat() if isinstance(day, date) else day for model, day in by_model.items()}


def _check_dates(since: Mapping[str, str]) -> Mapping[str, str]:
    for model, day in since.items():
        try:
            is_date = date.fromisoformat(day).isoformat() == day
        except ValueError:
            is_date = False
        if not is_date:
            raise ValueError(f"{f'{model}={day}' if model else day!r} is not a date such as 2026-03-01")
    return since


class WatchOptions(Part):
    """The settings of drift verdicts. Chances of a false `drift` hold regardless of how often you look."""

    baseline: Annotated[int, Field(ge=2)] = BASELINE
    """Number of reference snapshots: the first ones, with which later ones are compared."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = ALPHA
    """Chance that any of the series that are watched together has a false `drift`, however often you look."""
    since: Annotated[dict[str, str], BeforeValidator(_read_dates), AfterValidator(_check_dates)] = {}
    """A date, or dates by model or judge: earlier snapshots are left out, which accepts a known drift."""
    control: list[str] = []
    """Models that the others are compared with in each snapshot, such as one with fixed weights."""

    def replace_dates(self, since: Mapping[str, str]) -> WatchOptions:
        """Return the options with the dates of the option --since instead. Raises ConfigError if one is no date."""
        try:
            return self.model_copy(update={"since": _check_dates(since)})
        except ValueError as error:
            raise ConfigError(f"--since {error}") from None

    def threshold(self, n_series: int) -> float:
        """Return log10 of the e-value that each of `n_series` series must reach: alpha is split evenly."""
        return math.log10(max(1, n_series) / self.alpha)

    def is_control(self, model: str, peer: str, *, temperature: float | None = 0) -> bool:
        """Return whether a peer in the same snapshots at this temperature is a control of the model, not the model at other settings."""
        named = not self.control or peer in self.control or strip_settings(peer) in self.control
        return named and temperature == 0 and strip_settings(model) != strip_settings(peer)

    def is_any_counted(self, time: datetime | None, names: Iterable[str]) -> bool:
        """Return whether a snapshot of this time (UTC; unknown: before all dates) counts for a model of these names, most specific first."""
        since = self.find_since(names)
        return since is None or (time is not None and time >= datetime.fromisoformat(since))

    def find_since(self, names: Iterable[str]) -> str | None:
        """Return the date from which the snapshots of a model with these names count, or None if all do."""
        return next((self.since[name] for name in (*names, ALL_OTHERS) if name in self.since), None)

    def settings_for_judges(self, model: str, variant: str) -> WatchOptions:
        """Return the settings of a model's judges, which are watched separately, with the model's date."""
        since = self.find_since(list_names(model, variant))
        return self.model_copy(update={"since": {} if since is None else {ALL_OTHERS: since}})

    def require_known(self, models: Iterable[tuple[str, str]], judges: Iterable[tuple[str, str]] = ()) -> None:
        """Raise ConfigError for a date of an unknown model, which would have no effect.

        `models`: names and variants of those with scores; `judges`: of those that judged anchors.
        """
        known = [*models, *judges]
        if absent := self.absent(known):
            names = list_nearest(absent[0], {name for name, _ in known})
            raise ConfigError(f"since: no scores of a model {', '.join(absent)}; models and judges with scores: {names}")

    def absent(self, models: Iterable[tuple[str, str]]) -> list[str]:
        """Return the names in `since` that fit none of these models (names and variants)."""
        return sorted(set(self.since) - {ALL_OTHERS, *(name for model in models for name in list_names(*model))})

    def find_absent_controls(self, models: Iterable[str]) -> list[str]:
        """Return the names in `control` that fit none of these models."""
        names = {name for model in models for name in (model, strip_settings(model))}
        return [name for name in dict.fromkeys(self.control) if name not in names]


def list_names(model: str, variant: str) -> tuple[str, ...]:
    """Return a model's possible names, the most specific first."""
    return variant, model, strip_settings(model)


DRIFT_SECTION = "drift"
Named = Sequence[tuple[str, str]]
"""Names and variants of models."""


def load_drift_settings(path: Path) -> DriftSettings:
    """Return the section of a panel file, with defaults if it is missing. Raises ConfigError with file, line, found and allowed values."""
    return read_panel(path).section(DRIFT_SECTION, DriftSettings) or DriftSettings()


def require_known_names(document: Document, drift: DriftSettings, models: Named, judges: Named) -> None:
    """Raise ConfigError, with the line, if a date or control in the section names no model and so would have no effect.

    `models`: those of the panel and those with scores; `judges`: those of the panel, and those that judged anchors. Dates may name either,
    controls only language models.
    """
    ending = "and without scores; models of the panel or with scores"
    if absent := drift.absent([*models, *judges]):
        names = list_nearest(absent[0], {name for name, _ in (*models, *judges)})
        raise document.error((DRIFT_SECTION, "since", absent[0]), f"not a model of the panel, {ending}: {names}")
    controls = {name for name, variant in models if not is_computed(variant)}
    if absent := drift.find_absent_controls(controls):
        names = list_nearest(absent[0], controls)
        place = (DRIFT_SECTION, "control", drift.control.index(absent[0]))
        raise document.error(place, f"{absent[0]!r}: not a language model of the panel, {ending}: {names}")


def read_panel(path: Path) -> Document:
    """Read the file, without checking other sections."""
    return read_document(path, "panel file", [DRIFT_SECTION])


Level = Literal["WARN", "ERROR", "OFF"]


def _convert_level(value: Any) -> Any:
    """Convert a level. YAML reads a bare OFF as false."""
    return "OFF" if value is False else value


class Severity(Part):
    """Severity of a check by verdict. OFF reports the verdict and passes."""

    watch: Annotated[Level, BeforeValidator(_convert_level)] = "WARN"
    drift: Annotated[Level, BeforeValidator(_convert_level)] = "ERROR"


class DriftSettings(WatchOptions):
    """The settings of drift verdicts and of their notification."""

    severity: Severity = Severity()
    """Severity of the `has_no_drift` checks by verdict: WARN, ERROR or OFF."""
    notify: list[Literal["watch", "drift"]] = ["drift"]
    """Verdicts that are sent to the webhook: drift, watch. Sooner or later most series get `watch`, whether or not they changed."""

    @property
    def names_models(self) -> bool:
        """Whether dates or controls name models."""
        return bool(self.control or set(self.since) - {ALL_OTHERS})
