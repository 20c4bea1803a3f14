"""Keys of the panel file say what options of `dtef rubric run` and `dtef qa run` said: the same stages get the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.cli import anchors
from dtef_pipeline.cli.qa import qa_run
from dtef_pipeline.cli.qa.qa_run import QaOptions
from dtef_pipeline.cli.rubric import rubric_run
from dtef_pipeline.cli.rubric.rubric_run import RubricOptions
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.night_panel import QaPanel
from dtef_pipeline.rubric.night_panel import RubricPanel
from dtef_pipeline.rubric.policy import ScoringPolicy
from resources.settings import Settings
from tests.dtef_pipeline.cli.commands import dtef, name_panel

RUBRIC_KEYS: dict[str, tuple[Any, list[str]]] = {
    "judge_draws": (3, ["rubric_judgements"]),
    "scale": (10, ["rubric_judgements"]),
    "analysts": (["gpt-4.1"], ["rubric_summaries"]),
    "extract_points": (True, ["rubric_blueprints"]),
    "no_own_judge": (True, ["rubric_points", "rubric_scores"]),
    "with_labels": (True, ["rubric_points"]),
    "embedder": ("openai/embed", ["rubric_embeddings", "rubric_scores"]),
    "beta": (0.0, ["rubric_scores"]),
    "or_paths": ("two_group", ["rubric_scores"]),
    "should_not_paths": ("max", ["rubric_scores"]),
    "consistent_champions": (True, []),
}
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
    assert rubric_run.with_switches().config() == RubricOptions().config()
    assert qa_run.with_switches().config() == QaOptions().config()
    name_panel(state, monkeypatch, rubric={"models": ["other"], "draws": 9, "judges": ["standard=j"]}, qa={"suites": ["s"]})
    assert rubric_run.with_switches().config() == RubricOptions().config(), "whom a night asks is not whom a command asks"
    assert qa_run.with_switches().config() == QaOptions().config()
    switches = RubricPanel().switches
    usual = ScoringPolicy(switches["beta"], switches["or_paths"], switches["should_not_paths"])
    assert usual.policy_hash == ScoringPolicy().policy_hash


@pytest.mark.parametrize("key", RUBRIC_KEYS)
def test_a_key_of_the_section_rubric_reaches_the_stages_that_its_option_reached(
    key: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, stages = RUBRIC_KEYS[key]
    name_panel(state, monkeypatch, rubric={key: value})
    found = rubric_run.with_switches(snapshot="n1").config()
    assert found == RubricOptions(snapshot="n1", **{key: value}).config()
    at_night = RubricPanel(**{key: value}).run_config("n1")
    for stage in stages:
        assert found[stage][key] == at_night[stage][key] == value
    assert [stage for stage in found if found[stage] != RubricOptions(snapshot="n1").config()[stage]] == stages


@pytest.mark.parametrize("key", QA_KEYS)
def test_a_key_of_the_section_qa_reaches_the_stages_that_its_option_reached(
    key: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, stages = QA_KEYS[key]
    name_panel(state, monkeypatch, qa={key: value})
    found = qa_run.with_switches(snapshot="n1").config()
    at_night = QaPanel(**{key: value}).run_config("n1")
    assert changed(found, QaOptions(snapshot="n1").config(), key, value) == stages
    assert all(at_night[stage][key] == value for stage in stages)


@pytest.mark.usefixtures("state")
def test_trust_in_answers_reaches_the_stage_that_runs_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    monkeypatch.setattr(qa_run, "run", lambda options: told.append(options.config()["qa_executions"]["trust_answers"]))
    for given in ([], ["--trust-answers"]):
        assert dtef("qa", "run", "--suite", "humaneval", "--model", "gpt-4.1", *given).exit_code == 0
    assert told == [False, True]


def test_anchors_are_judged_by_the_same_scale_and_within_the_same_budget(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(state, monkeypatch, rubric={"scale": 10}, qa={"daily_budget": 2, "allow_unpriced": ["j"], "strict": True})
    settings, given = Settings.from_environment(), {"judges": (), "judges_file": None}
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
    run = {"rubric": rubric_run, "qa": qa_run}[section]
    with pytest.raises(ConfigError) as raised:
        run.with_switches()
    assert f"panel.yaml:2: {message}" in str(raised.value)


@pytest.mark.parametrize("run", [rubric_run, qa_run])
def test_a_section_that_nothing_reads_is_refused(run: Any, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rubrics: {beta: 0}` ran with the usual beta."""
    name_panel(state, monkeypatch, rubrics={"beta": 0})
    with pytest.raises(ConfigError, match=r"panel\.yaml:1: rubrics: unknown key; known: .*rubric, qa"):
        run.with_switches()
