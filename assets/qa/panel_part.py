"""The section on questions with expected answers of this installation's panel: the file that DTEF_PANEL names."""

from assets.stage.panel_section import panel_section
from dtef_pipeline.qa.night_panel import QaPanel, load_qa_panel
from resources.settings import Settings


def qa_panel(settings: Settings) -> QaPanel | None:
    """None: there is no panel file, or it has no section `qa`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    return panel_section(settings, load_qa_panel)
