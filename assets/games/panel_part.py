"""The section on games of this installation's panel: the file that DTEF_PANEL names."""

from assets.stage.panel_section import panel_section
from dtef_pipeline.games.night_panel import GamesPanel, load_games_panel
from resources.settings import Settings


def games_panel(settings: Settings) -> GamesPanel | None:
    """None: there is no panel file, or it has no section `games`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    return panel_section(settings, load_games_panel)
