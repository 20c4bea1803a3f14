"""The section on questions with expected answers of this installation's panel: the file that DTEF_PANEL names."""

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.night_panel import QaPanel, load_qa_panel
from resources.settings import Settings


def qa_panel(settings: Settings) -> QaPanel | None:
    """None: there is no panel file, or it has no section `qa`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    if settings.panel is None:
        return None
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    return load_qa_panel(settings.panel)
