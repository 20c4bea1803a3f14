"""Settings: what another process is given, and that no secret is among it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.panel import Panel
from resources.panel_file import known_panel
from resources.settings import Settings


def test_another_process_gets_the_places_in_full_and_no_secret() -> None:
    given = {"DTEF_PANEL": "panel.yaml", "DTEF_WEBHOOK": "https://h.example/secret"}
    passed = Settings.from_environment(given).environment()
    assert passed["DTEF_PANEL"] == str(Path("panel.yaml").absolute())
    assert "secret" not in str(passed)


def test_the_webhook_is_not_shown() -> None:
    settings = Settings.from_environment({"DTEF_WEBHOOK": "https://h.example/secret"})
    assert settings.webhook == "https://h.example/secret"
    assert "secret" not in repr(settings)


def test_without_a_panel_file_the_defaults_hold() -> None:
    assert known_panel(Settings.from_environment({"DTEF_PANEL": ""})) == Panel()


def test_a_panel_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"DTEF_PANEL names /nowhere/panel.yaml, which is not a file"):
        known_panel(Settings.from_environment({"DTEF_PANEL": "/nowhere/panel.yaml"}))
