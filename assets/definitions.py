"""Dagster's definitions."""

import dagster as dg

from assets import plugin_assets
from assets.evaluations.queue_sensor import build_queue_sensor
from assets.stage.drift_webhook import drift_webhook

__all__ = ["defs"]

_FAMILIES = plugin_assets.load_definitions(*plugin_assets.EVERY_FAMILY)
_SCORING = [job for job in _FAMILIES.jobs or () if job.name.endswith(("_pipeline", "_nightly"))]

defs = dg.Definitions.merge(_FAMILIES, dg.Definitions(sensors=[build_queue_sensor(_SCORING), drift_webhook]))
