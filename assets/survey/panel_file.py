"""The panel of this installation: the file that DTEF_PANEL names."""

from __future__ import annotations

from collections.abc import Sequence

from assets.stage.panel_drift import load_drift_section, load_panel_section, panel_drift
from dtef_pipeline.asking.models import Models
from dtef_pipeline.identity import partition_key, split_partition_key
from dtef_pipeline.survey.panel import check_named, load_panel
from dtef_pipeline.survey.settings import SurveySettings
from resources.settings import Settings
from resources.warehouse import Warehouse


def load_known_panel(settings: Settings) -> SurveySettings:
    """Return the panel or its defaults. Raises ConfigError if the file of DTEF_PANEL is missing, or its keys or `drift` are wrong."""
    panel = load_panel_section(settings, load_panel)
    load_drift_section(settings)
    return panel or SurveySettings()


def load_checked_panel(settings: Settings, models: Models, warehouse: Warehouse | None) -> SurveySettings:
    """Return the panel (see `load_known_panel`) after checking its models, rounds and segments.

    Raises ConfigError, with file and line, for what does not exist. Rounds and segments are not checked without a `warehouse`, or if it has
    no rounds.
    """
    panel, path = load_known_panel(settings), settings.panel
    if path is None:
        return panel
    check_named(path, models, _list_ingested(warehouse) if warehouse else [])
    panel_drift(settings, warehouse)
    return panel


def _list_ingested(warehouse: Warehouse) -> list[str]:
    return [
        partition_key(round_id, segment)
        for round_id in warehouse.values("survey_responses", "round")
        for segment in warehouse.values("survey_responses", "segment", round=round_id)
    ]


def with_blueprints(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """Return the partitions with prompts; partitions that were only ingested have none."""
    rounds = {split_partition_key(key)[0] for key in keys}
    stored_keys = {(name, segment) for name in rounds for segment in warehouse.values("blueprints", "segment", round=name)}
    return [key for key in keys if split_partition_key(key) in stored_keys]
