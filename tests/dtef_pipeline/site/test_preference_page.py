"""The page on preference: what players are called."""

from __future__ import annotations

from dtef_pipeline.site.preference_page import shorten_player_names


def test_players_are_named_without_settings_where_nobody_else_has_that_name() -> None:
    players = {
        "gpt-4.1[temperature=0]",
        "o3[effort=low]",
        "o3[effort=high]",
        "calm:v2@o3[effort=low]",
        "baseline/nash",
        "[x]",
        "a[b",
    }
    assert shorten_player_names(players) == {
        "gpt-4.1[temperature=0]": "gpt-4.1",
        "o3[effort=low]": "o3[effort=low]",
        "o3[effort=high]": "o3[effort=high]",
        "calm:v2@o3[effort=low]": "calm:v2@o3",
        "baseline/nash": "baseline/nash",
        "[x]": "[x]",
        "a[b": "a[b",
    }
    assert shorten_player_names({"o3", "o3[effort=low]"}) == {"o3": "o3", "o3[effort=low]": "o3[effort=low]"}
