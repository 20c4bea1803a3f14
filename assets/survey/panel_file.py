"""The panel of this installation: the file that DTEF_PANEL names."""

from __future__ import annotations

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.panel import Panel, load_panel
from resources.settings import Settings


def known_panel(settings: Settings) -> Panel:
    """The panel's defaults without a file. Raises ConfigError when DTEF_PANEL names no file, or the file has a fault."""
    if settings.panel is None:
        return Panel()
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    return load_panel(settings.panel)
