"""Keys of the panel file say what options of `dtef rubric run` and `dtef qa run` said: the same stages get the same settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.cli import anchors, family_run
from dtef_pipeline.cli.families import family_settings
from dtef_pipeline.cli.rubric import rubric_run
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import RunSettings, run_config
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.rubric.hybrid import ScoringPolicy
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings
from resources.settings import Settings
from tests.dtef_pipeline.cli.commands import dtef, name_panel

RUBRIC_KEYS: dict[str, tuple[Any, list[str]]] = {
    "judge_draws": (3, ["rubric_judgements"]),
    "scale": (10, ["rubric_judgements"]),
    "analysts": (["gpt-4.1"], ["rubric_blueprints", "rubric_summaries"]),
    "extract_points": (True, ["rubric_blueprints"]),
    "no_own_judge": (True, ["rubric_points", "rubric_scores"]),
    "with_labels": (True, ["rubric_points"]),
    "embedder": ("openai/embed", ["rubric_embeddings", "rubric_scores"]),
    "beta": (0.0, ["rubric_scores"]),
    "or_paths": ("two_group", ["rubric_scores"]),
    "should_not_paths": ("max", ["rubric_scores"]),
    "consistent_champions": (True, []),
}
READ: dict[str, Callable[[dict[str, Any]], RunSettings]] = {
    "rubric": rubric_run.with_panel,
    "qa": partial(family_settings, "qa"),
}
"""Reads the section of a family, as its command does."""
STAGES = {"rubric": RUBRIC_STAGE_SETTINGS, "qa": QA_STAGE_SETTINGS}
QA_KEYS: dict[str, tuple[Any, list[str]]] = {
    "few_shot_as": ("turns", ["qa_prompts", "qa_responses"]),
    "sample_rate": (0.5, ["qa_judgements"]),
    "daily_budget": (2.0, ["qa_judgements"]),
    "allow_unpriced": (["j"], ["qa_judgements"]),
    "sandbox": ("off", ["qa_executions"]),
    "timeout_s": (3.0, ["qa_executions"]),
    "strict": (True, ["qa_scores"]),
    "penalty": (0.25, ["qa_scores"]),
    "senses": ("all", ["qa_scores"]),
}


def changed(given: dict[str, Any], usual: dict[str, Any], key: str, value: object) -> list[str]:
    """The stages whose settings differ, each in this key alone."""
    stages = [stage for stage in given if given[stage] != usual.get(stage, {})]
    assert all(given[stage][key] == value for stage in stages)
    return stages


def test_without_a_panel_or_with_an_empty_section_all_is_as_usual(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rubric_run.with_panel({}) == RubricSettings()
    assert family_settings("qa", {}) == QaSettings()
    name_panel(state, monkeypatch, rubric={"models": ["other"], "draws": 9, "judges": ["standard=j"]}, qa={"suites": ["s"]})
    assert rubric_run.with_panel({}) == RubricSettings(), "whom a night asks is not whom a command asks"
    assert family_settings("qa", {}) == QaSettings()
    usual = RubricSettings()
    policy = ScoringPolicy(usual.beta, usual.or_paths, usual.should_not_paths, usual.embedder)
    assert policy.policy_hash == ScoringPolicy().policy_hash


@pytest.mark.parametrize(("family", "key"), [*(("rubric", key) for key in RUBRIC_KEYS), *(("qa", key) for key in QA_KEYS)])
def test_a_key_of_a_section_reaches_the_stages_that_take_it(
    family: str, key: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, stages = {**RUBRIC_KEYS, **QA_KEYS}[key]
    usual = run_config(READ[family]({"snapshot": "n1"}), STAGES[family])
    name_panel(state, monkeypatch, **{family: {key: value}})
    found = run_config(READ[family]({"snapshot": "n1"}), STAGES[family])
    assert changed(found, usual, key, value) == stages


@pytest.mark.usefixtures("state")
def test_trust_in_answers_reaches_the_stage_that_runs_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    monkeypatch.setattr(family_run, "run", lambda record, options, beside: told.append(options.trust_answers))
    for given in ([], ["--trust-answers"]):
        assert dtef("qa", "run", "--suite", "humaneval", "--model", "gpt-4.1", *given).exit_code == 0
    assert told == [False, True]


def test_anchors_are_judged_by_the_same_scale_and_within_the_same_budget(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(state, monkeypatch, rubric={"scale": 10}, qa={"daily_budget": 2, "allow_unpriced": ["j"], "strict": True})
    settings, given = Settings.read_environment(), {"judges": (), "judges_file": None, "anchors": 5, "anchor_seed": 0}
    assert anchors.ANCHORED["rubric"].with_panel(given, settings)["scale"] == 10
    of_qa = anchors.ANCHORED["qa"].with_panel(given, settings)
    assert (of_qa["daily_budget"], of_qa["allow_unpriced"], "strict" in of_qa) == (2, ["j"], False)


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("rubric", "or_paths", "both", "rubric.or_paths: got 'both'; allowed: document, two_group"),
        ("rubric", "beta", 2, "rubric.beta: got 2; allowed: 0 to 1"),
        ("rubric", "should_not_path", "max", "rubric.should_not_path: unknown key; known: "),
        ("rubric", "embedder", "nosuch", "rubric.embedder: no model or collection 'nosuch'"),
        ("rubric", "analysts", ["nosuch"], "rubric.analysts: no model or collection 'nosuch'"),
        ("qa", "senses", "some", "qa.senses: got 'some'; allowed: first, all"),
        ("qa", "penalty", -1, "qa.penalty: got -1; allowed: 0 to 1"),
    ],
)
def test_a_faulty_key_is_named_with_file_line_and_what_is_allowed(
    section: str, key: str, value: object, message: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_panel(state, monkeypatch, **{section: {key: value}})
    with pytest.raises(ConfigError) as raised:
        READ[section]({})
    assert f"panel.yaml:2: {message}" in str(raised.value)


@pytest.mark.parametrize("family", READ)
def test_a_section_that_nothing_reads_is_refused(family: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rubrics: {beta: 0}` ran with the usual beta."""
    name_panel(state, monkeypatch, rubrics={"beta": 0})
    with pytest.raises(ConfigError, match=r"panel\.yaml:1: rubrics: unknown key; known: .*rubric, qa"):
        READ[family]({})
