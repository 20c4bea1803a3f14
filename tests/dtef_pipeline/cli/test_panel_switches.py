"""Keys of the panel file say what options of `dtef rubric run` and `dtef qa run` said: the same stages get the same settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.cli import anchors
from dtef_pipeline.cli.families import family_settings
from dtef_pipeline.cli.rubric import rubric_run
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.qa.settings import QaSettings
from dtef_pipeline.rubric.scoring import ScoringPolicy
from dtef_pipeline.rubric.settings import RubricSettings
from resources.settings import Settings
from tests.dtef_pipeline.cli.commands import name_panel

READ: dict[str, Callable[[dict[str, Any]], RunSettings]] = {
    "rubric": rubric_run.with_panel,
    "qa": partial(family_settings, "qa"),
}
"""Reads the section of a family, as its command does."""


def test_without_a_panel_or_with_an_empty_section_all_is_as_usual(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rubric_run.with_panel({}) == RubricSettings()
    assert family_settings("qa", {}) == QaSettings()
    name_panel(state, monkeypatch, rubric={"models": ["other"], "draws": 9, "judges": ["standard=j"]}, qa={"suites": ["s"]})
    assert rubric_run.with_panel({}) == RubricSettings(), "whom a night asks is not whom a command asks"
    assert family_settings("qa", {}) == QaSettings()
    usual = RubricSettings()
    policy = ScoringPolicy(usual.beta, usual.or_paths, usual.should_not_paths, usual.embedder)
    assert policy.policy_hash == ScoringPolicy().policy_hash


def test_anchors_are_judged_by_the_same_scale_and_within_the_same_budget(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(state, monkeypatch, rubric={"scale": 10}, qa={"daily_budget": 2, "allow_unpriced": ["j"], "strict": True})
    given, settings, models = {"judges": (), "judges_file": None}, Settings.read_environment(), load_models("models: {}")
    assert anchors.build_rubric_config(given, settings, models) == ({"judges": [], "scale": 10}, set())
    assert anchors.build_qa_config(given, settings, models) == ({"daily_budget": 2, "allow_unpriced": ["j"]}, set())


@pytest.mark.parametrize("family", READ)
def test_a_section_that_nothing_reads_is_refused(family: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rubrics: {beta: 0}` ran with the usual beta."""
    name_panel(state, monkeypatch, rubrics={"beta": 0})
    with pytest.raises(ConfigError, match=r"panel\.yaml:1: rubrics: unknown key; known: .*rubric, qa"):
        READ[family]({})
