"""The section `preference` of this installation's panel: how votes are selected and counted."""

from assets.stage.family_drift import load_panel_section
from dtef_pipeline.preference.vote_fit import VoteSettings, load_vote_settings
from resources.settings import Settings


def vote_settings(settings: Settings) -> VoteSettings:
    """Return the section or its defaults. Raises ConfigError if it has a fault."""
    return load_panel_section(settings, load_vote_settings) or VoteSettings()
