"""The settings of drift verdicts, as people write them in a panel file."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from dtef_pipeline.documents import Part
from dtef_pipeline.drift.evidence import ALPHA, BASELINE
from dtef_pipeline.drift.options import ALL_OTHERS, WatchOptions
from dtef_pipeline.errors import ConfigError

Level = Literal["WARN", "ERROR", "OFF"]


def _dates(value: Any) -> Any:
    """A date, or dates by model, as people write them: YAML takes 2026-03-01 for a date."""
    by_model = value if isinstance(value, dict) else {ALL_OTHERS: value}
    for model, day in by_model.items():
        if not isinstance(day, date | str):
            given = f"{model}: {day!r}" if model else repr(day)
            raise ValueError(f"got {given}; allowed: a date such as 2026-03-01, or a mapping of models to dates")
    return {model: day.isoformat() if isinstance(day, date) else day for model, day in by_model.items()}


def _level(value: Any) -> Any:
    """YAML takes a bare OFF for false."""
    return "OFF" if value is False else value


class Severity(Part):
    """How loud a check is about a verdict: OFF names it and passes."""

    watch: Annotated[Level, BeforeValidator(_level)] = "WARN"
    drift: Annotated[Level, BeforeValidator(_level)] = "ERROR"


class DriftSettings(Part):
    """By which settings a series gets its verdict, and who hears of it."""

    baseline: Annotated[int, Field(ge=2)] = BASELINE
    alpha: Annotated[float, Field(gt=0, lt=1)] = ALPHA
    since: Annotated[dict[str, str], BeforeValidator(_dates)] = {}
    """A date, or dates by model."""
    control: list[str] = []
    """The models that others are compared with night by night; none given: all others."""
    severity: Severity = Severity()
    tell: list[Literal["watch", "drift"]] = ["drift"]
    """Verdicts that are sent to the webhook. Most series are to watch sooner or later, whether or not they changed."""

    @field_validator("since")
    @classmethod
    def _are_dates(cls, since: dict[str, str]) -> dict[str, str]:
        try:
            WatchOptions(since=since)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return since

    @property
    def options(self) -> WatchOptions:
        return WatchOptions(self.baseline, self.alpha, self.since, tuple(self.control))
