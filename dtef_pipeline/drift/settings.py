"""The section `drift` of a panel file: by which settings verdicts are given, and who hears of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from dtef_pipeline.documents import Part
from dtef_pipeline.drift.options import WatchOptions

Level = Literal["WARN", "ERROR", "OFF"]


def _level(value: Any) -> Any:
    """YAML takes a bare OFF for false."""
    return "OFF" if value is False else value


class Severity(Part):
    """How loud a check is about a verdict: OFF names it and passes."""

    watch: Annotated[Level, BeforeValidator(_level)] = "WARN"
    drift: Annotated[Level, BeforeValidator(_level)] = "ERROR"


class DriftSettings(WatchOptions):
    """By which settings a series gets its verdict, and who hears of it."""

    severity: Severity = Severity()
    tell: list[Literal["watch", "drift"]] = ["drift"]
    """Verdicts that are sent to the webhook. Most series are to watch sooner or later, whether or not they changed."""
