"""The panel file: defaults, spellings, accepted drifts, and faults with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.survey.nightly import load_known_panel
from dtef_pipeline.asking.models import Budget, load_models
from dtef_pipeline.drift.settings import DriftSettings, load_drift_settings, read_panel, require_known_names
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.settings import (
    SurveySettings,
    check_named,
    load_panel,
    resolve_panel,
    resolve_panel_budgets,
    select_panel_partitions,
)
from resources.settings import Settings
from tests.conftest import ROOT

MODELS = load_models(
    ROOT / "data" / "models.yaml",
    """
    collections: {pair: [warm, cold]}
    models:
      warm: {model: openai/warm, temperature: 0.7, budget: {max_calls: 7}}
      cold: {model: openai/cold}
      thinking: {model: openai/thinking, temperature: null}
    """,
    computed=BASELINES,
)
KNOWN = ["T1/country:chile", "T1/country:india", "T2/country:chile", "T2/ageGroup:18-25"]
SCORED = [("old", "old[temperature=0]")]
NO_MODEL = r"not a (language )?model of the panel, and without scores; models of the panel or with scores: cold, old, warm@"


def check_all(path: Path) -> None:
    """All that a panel names: of surveys and of drift."""
    named = [(spec.name, spec.variant) for spec in resolve_panel(check_named(path, MODELS, KNOWN), MODELS)]
    require_known_names(read_panel(path), load_drift_settings(path), [*named, *SCORED], [])


def read(tmp_path: Path, text: str) -> SurveySettings:
    path = tmp_path / "panel.yaml"
    path.write_text(text, encoding="utf-8")
    return load_known_panel(Settings.read_environment({"DTEF_PANEL": str(path)}))


def read_drift(tmp_path: Path, text: str) -> DriftSettings:
    read(tmp_path, text)
    return load_drift_settings(tmp_path / "panel.yaml")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "rounds:\nmodels:\ndrift:\n"])
def test_what_is_not_stated_has_a_default(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == load_known_panel(Settings.read_environment({"DTEF_PANEL": ""})) == SurveySettings()
    assert SurveySettings().models == ["baselines"]
    assert SurveySettings().temperature == 0


def test_a_panel_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"DTEF_PANEL names /nowhere/panel.yaml, which does not exist"):
        load_known_panel(Settings.read_environment({"DTEF_PANEL": "/nowhere/panel.yaml"}))


def test_values_are_read_as_people_write_them(tmp_path: Path) -> None:
    text = (
        "context_levels: [0, '5', all]\nconditions: [shift+cot]\n"
        "drift: {since: 2026-03-01, alpha: 0.01, baseline: 7, severity: {watch: OFF, drift: WARN}}\n"
    )
    panel, drift = read(tmp_path, text), read_drift(tmp_path, text)
    assert panel.context_levels == ["0", "5", "all"]
    assert panel.conditions == ["shift/attribute-label+cot"]
    assert (drift.baseline, drift.alpha, drift.since) == (7, 0.01, {"": "2026-03-01"})
    assert (drift.severity.watch, drift.severity.drift) == ("OFF", "WARN")


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2026-03-01", {"": "2026-03-01"}),
        ("{warm: 2026-03-01, cold: '2026-04-01'}", {"warm": "2026-03-01", "cold": "2026-04-01"}),
        ("", {}),
    ],
)
def test_a_drift_is_accepted_of_all_models_or_of_some(tmp_path: Path, text: str, since: dict[str, str]) -> None:
    assert read_drift(tmp_path, f"drift:\n  since: {text}\n").since == since


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("draws: 2\nmodles: [a]\n", 2, "modles: unknown key; known: max_cost_usd, max_calls, max_tokens, budgets, rounds"),
        ("drift:\n  severity:\n    wach: WARN\n", 3, "drift.severity.wach: unknown key; known: watch, drift"),
        ("drift:\n  severity:\n    drift: LOUD\n", 3, "drift.severity.drift: got 'LOUD'; allowed: WARN, ERROR, OFF"),
        ("budgets:\n  cold: {max_call: 1}\n", 2, "budgets.cold.max_call: unknown key; known: max_cost_usd, max_calls"),
        ("max_cost_usd: .inf\n", 1, "max_cost_usd: got inf; allowed: a finite number"),
        ("drift: {alpha: 1}\n", 1, "drift.alpha: got 1; allowed: more than 0 and less than 1"),
        ("drift: {since: {warm: soon}}\n", 1, "drift.since: 'warm=soon' is not a date such as 2026-03-01"),
        (
            "draws: 2\ndrift:\n  since: {warm: 2026-13-01}\n",
            3,
            "not a readable panel file: 2026-13-01 is not a date: month",
        ),
        ("drift: {baseline: 1}\n", 1, "drift.baseline: got 1; allowed: 2 or more"),
        ("context_levels: [0, some]\n", 1, "context_levels: 'some' is not a context level"),
        (
            "conditions: [foo/bar]\n",
            1,
            "conditions: unknown task 'foo'; allowed: distribution, shift, synthetic-individuals",
        ),
        ("conditions: [nonsense]\n", 1, "conditions: unknown task 'nonsense'; allowed: distribution, shift"),
    ],
)
def test_a_fault_is_named_by_file_line_field_and_what_is_allowed(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert f"{tmp_path / 'panel.yaml'}:{line}: {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models:\n- pair\n- wram\n", r":3: models\.1: no model or collection 'wram'.*warm"),
        ("models: [warm]\nbudgets:\n  cold: {max_calls: 1}\n", r":3: budgets\.cold: .*allowed: warm@"),
        ("draws: 1\nrounds: [T1, T9]\n", r":2: rounds: T9 not ingested; ingested: T1, T2$"),
        (
            "models: [pair]\ndrift:\n  since: {warm: 2026-03-01,\n    wram: 2026-03-01}\n",
            rf":4: drift\.since\.wram: {NO_MODEL}",
        ),
        ("models: [pair]\ndrift:\n  control:\n  - old\n  - cald\n", rf":5: drift\.control\.1: 'cald': {NO_MODEL}"),
        (
            "models: [warm]\ndrift: {control: [baseline/uniform]}\n",
            r":2: drift\.control\.0: 'baseline/uniform': not a language",
        ),
        ("rounds: [T1]\nsegments: ['ageGroup:18-25']\n", r":2: segments: ageGroup:18-25 "),
        ("- cold\n", ".*allowed: a mapping with max_cost_usd"),
        ("a: [", ".*not a readable panel file"),
        ("draws: 1\ndraws: 2\n", ".*twice"),
    ],
)
def test_what_a_panel_names_and_is_not_there_is_stated_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "panel.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"panel.yaml{said}"):
        check_all(path)


def test_the_shipped_example_can_be_used_as_it_is() -> None:
    panel = load_panel(ROOT / "data" / "panel.yaml")
    asked = {spec.name for spec in resolve_panel(panel, MODELS)}
    assert set(resolve_panel_budgets(panel, MODELS)) <= asked


def test_language_models_get_the_panels_temperature_unless_they_take_none_or_say_their_own() -> None:
    panel = SurveySettings(models=["pair", "thinking", "warm@temperature=0.2", "baseline/uniform", "warm@max_tokens=9"])
    assert [(spec.name, spec.temperature) for spec in resolve_panel(panel, MODELS)] == [
        ("warm@temperature=0", 0),
        ("cold", 0),
        ("thinking", None),
        ("warm@temperature=0.2", 0.2),
        ("baseline/uniform", None),
        ("warm@max_tokens=9,temperature=0", 0),
    ]


def test_a_budget_is_for_the_model_as_it_is_asked_and_keeps_its_other_bounds() -> None:
    panel = SurveySettings(models=["pair"], budgets={"warm": Budget(max_cost_usd=1)})
    assert resolve_panel_budgets(panel, MODELS) == {"warm@temperature=0": Budget(max_cost_usd=1, max_calls=7)}


def test_without_a_choice_all_partitions_are_selected_in_their_order() -> None:
    assert select_panel_partitions(SurveySettings(), KNOWN) == KNOWN
    assert select_panel_partitions(SurveySettings(rounds=["T2"]), KNOWN) == KNOWN[2:]
    assert select_panel_partitions(SurveySettings(segments=["country:chile"]), KNOWN) == [KNOWN[0], KNOWN[2]]
