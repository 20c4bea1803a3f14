"""The rubric section of this installation's panel: the file that DTEF_PANEL names."""

from assets.stage.panel_section import panel_section
from dtef_pipeline.rubric.night_panel import RubricPanel, load_rubric_panel
from resources.settings import Settings


def rubric_panel(settings: Settings) -> RubricPanel | None:
    """None: there is no panel file, or it has no section `rubric`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    return panel_section(settings, load_rubric_panel)


def panel_or_usual(settings: Settings) -> RubricPanel:
    """The section `rubric` of the panel file; its defaults where there is none."""
    return rubric_panel(settings) or RubricPanel()
