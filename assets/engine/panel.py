"""What the panel file of this installation, which DTEF_PANEL names, says of the runs of a family."""

from functools import partial

from assets.stage.panel_section import panel_section
from dtef_pipeline.family.run_settings import FamilySettings, panel_settings
from resources.settings import Settings


def family_panel(settings: Settings, section: str, model: type[FamilySettings]) -> FamilySettings | None:
    """The settings of the section; None: there is no panel file, or it has no such section.

    Raises ConfigError when DTEF_PANEL names no file, or the section has a fault.
    """
    return panel_section(settings, partial(panel_settings, section=section, model=model))
