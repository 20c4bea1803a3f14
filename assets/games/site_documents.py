"""The games family on the site, with the rules and personas that this installation knows."""

from assets.games.game_catalog import load_known_games
from dtef_pipeline.games.site.family_site import build_games_site
from dtef_pipeline.site.family_content import FamilySite
from resources.settings import Settings


def build_documented_site(settings: Settings) -> FamilySite:
    """Build the games' pages with the scenarios and personas of the settings. Raises as `load_known_games`."""
    return build_games_site(load_known_games(settings))
