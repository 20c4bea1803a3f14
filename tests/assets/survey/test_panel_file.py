"""The panel file: where it is, and that it is there."""

from __future__ import annotations

import pytest

from assets.survey.nightly import load_known_panel
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.settings import SurveySettings
from resources.settings import Settings


def test_without_a_panel_file_the_defaults_hold() -> None:
    assert load_known_panel(Settings.read_environment({"DTEF_PANEL": ""})) == SurveySettings()


def test_a_panel_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"DTEF_PANEL names /nowhere/panel.yaml, which does not exist"):
        load_known_panel(Settings.read_environment({"DTEF_PANEL": "/nowhere/panel.yaml"}))
