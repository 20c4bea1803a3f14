"""The section `preference` of this installation's panel: which votes count, and how."""

from assets.stage.panel_drift import load_panel_section
from dtef_pipeline.preference.vote_fit import VoteSettings, load_vote_settings
from resources.settings import Settings


def vote_settings(settings: Settings) -> VoteSettings:
    """The section; its defaults where there is none. Raises ConfigError when it has a fault."""
    return load_panel_section(settings, load_vote_settings) or VoteSettings()
