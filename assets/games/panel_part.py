"""The section on games of this installation's panel: the file that DTEF_PANEL names."""

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.night_panel import GamesPanel, load_games_panel
from resources.settings import Settings


def games_panel(settings: Settings) -> GamesPanel | None:
    """None: there is no panel file, or it has no section `games`. Raises ConfigError when DTEF_PANEL names no file, or it has a fault."""
    if settings.panel is None:
        return None
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    return load_games_panel(settings.panel)
