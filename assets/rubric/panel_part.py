"""The rubric section of this installation's panel: the file that DTEF_PANEL names."""

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.night_panel import RubricPanel, load_rubric_panel
from resources.settings import Settings


def rubric_panel(settings: Settings) -> RubricPanel | None:
    """None: there is no panel file, or it has no section `rubric`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    if settings.panel is None:
        return None
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    return load_rubric_panel(settings.panel)
