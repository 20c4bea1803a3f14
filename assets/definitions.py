"""Dagster's definitions."""

import dagster as dg

from assets import plugin_assets
from assets.evaluations.queue_sensor import build_queue_sensor
from assets.stage.drift_webhook import drift_webhook

__all__ = ["defs"]


def _build_definitions() -> dg.Definitions:
    families = plugin_assets.load_definitions(*plugin_assets.EVERY_FAMILY)
    scoring = [job for job in families.jobs or () if job.name.endswith(("_pipeline", "_nightly"))]
    return dg.Definitions.merge(families, dg.Definitions(sensors=[build_queue_sensor(scoring), drift_webhook]))


# Dagster refuses a module with a second object of Definitions.
defs = _build_definitions()
