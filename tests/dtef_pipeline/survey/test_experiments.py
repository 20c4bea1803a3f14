"""Experiment files: what they may say, what is asked for them, and how a fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.experiments import Experiment, load_experiment, resolve_asked_models
from tests.conftest import ROOT

SHIPPED = sorted((ROOT / "data" / "experiments").glob("*.yaml"))
MODELS = load_models(
    "models: {mini: {model: openai/mini}, deep: {model: openai/deep, temperature: 1}, baseline/uniform: }", computed=BASELINES
)
TWO = "conditions: [{name: a}, {name: b, reasoning: cot}]"


def written(folder: Path, text: str, head: str = "name: e\nhypothesis: h\n") -> Path:
    path = folder / "mine.yaml"
    path.write_text(head + text, encoding="utf-8")
    return path


def load(folder: Path, text: str) -> Experiment:
    return load_experiment(written(folder, text))


class TestConditions:
    def test_a_spelling_and_the_fields_say_the_same(self, tmp_path: Path) -> None:
        found = load(
            tmp_path,
            "conditions:\n"
            "  - {name: plain, condition: distribution}\n"
            "  - {name: spelled, condition: shift/narrative+cot+reversed}\n"
            "  - {name: said, task: shift, format: narrative, reasoning: cot, option_order: reversed, structured: true}\n",
        )
        assert [found.options(condition).condition for condition in found.conditions] == [
            "distribution/attribute-label",
            "shift/narrative+cot+reversed",
            "shift/narrative+cot+structured+reversed",
        ]

    def test_own_system_prompts_reach_the_options_by_their_id(self, tmp_path: Path) -> None:
        text = (
            "system_prompts: {statistician: You are a statistician.}\n"
            "conditions: [{name: a}, {name: b, system: statistician}, {name: c, condition: shift+system=statistician}]"
        )
        found = load(tmp_path, text)
        assert [found.options(condition).system_text for condition in found.conditions] == [
            "",
            *["You are a statistician."] * 2,
        ]


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("conditions: [{name: a}]", r"mine\.yaml:3: conditions: got .*; allowed: at least 2 items"),
            ("draws: 2", "conditions: is missing"),
            (TWO + "\ndraw: 2", "draw: unknown key; known: name, hypothesis, conditions, models, contexts"),
            ("conditions: [{name: a}, {name: b, contexts: 5}]", "condition 'b': contexts: got 5; allowed: a list of texts"),
            (TWO + "\ncontexts: [some]", "condition 'a': 'some' is not a context level"),
            (TWO + "\ncontexts: []", "contexts: .*at least 1 item"),
            (
                "conditions: [{name: a}, {name: b, task: guess}]",
                "condition 'b': unknown task 'guess'; allowed: distribution, shift",
            ),
            ("conditions: [{name: a}, {name: b c}]", "condition 'b c': name: got 'b c'; allowed: text that matches"),
            (
                "conditions: [{name: a}, {name: b, condition: shift+hot}]",
                "condition 'b': condition 'shift\\+hot': unknown word 'hot'",
            ),
            (
                "conditions: [{name: a}, {name: b, condition: shift, reasoning: cot}]",
                "condition 'b': condition and reasoning are given; allowed: either",
            ),
            (
                "conditions: [{name: a}, {name: b, settings: {heat: 1}}]",
                "condition 'b': settings: unknown 'heat'; allowed: temperature, max_tokens",
            ),
            (
                "conditions: [{name: a}, {name: b, settings: {temperature: false}}]",
                "condition 'b': .*true and false are not values",
            ),
            ("conditions: [{name: a}, {name: b, settings: {temperature: -1}}]", "condition 'b': .*0 or more"),
            (
                "conditions: [{name: a}, {name: b, reasoning: cot, batch_size: 2}]",
                r"mine\.yaml:3: condition 'b': batch_size: 2 .*; allowed: with task: batch",
            ),
            (
                "conditions: [{name: a}, {name: b, reasoning: cot, seed: 5}]",
                "condition 'b': seed: 5 .*; allowed: with selection: random",
            ),
            (
                "conditions: [{name: a}, {name: b, task: shift, profile: population}]",
                "condition 'b': profile 'population' with the task shift, .* allowed: distribution",
            ),
            ("conditions: [{name: a}, {name: b}]", "condition 'b': repeats 'a'"),
            (
                "conditions: [{name: a}, {name: b, reasoning: cot, contexts: [5]}]",
                "contexts: conditions that differ in contexts",
            ),
            ("conditions: [{name: a}, {name: b, contexts: [5, 10]}]", "contexts: .*got 0; 5, 10"),
        ],
    )
    def test_a_fault_names_the_file_the_condition_the_field_and_what_is_allowed(
        self, tmp_path: Path, text: str, message: str
    ) -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            load(tmp_path, text)
        assert str(caught.value).startswith(str(tmp_path / "mine.yaml"))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("name: [", r"mine\.yaml:1: not a readable experiment file: the list or mapping in brackets"),
            ("- a", "mine\\.yaml:1: not a readable experiment file: got \\['a'\\]; allowed: a mapping with name, hypothesis"),
        ],
    )
    def test_what_is_no_experiment_is_named(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            load_experiment(path)
        with pytest.raises(ConfigError, match=r"nowhere\.yaml: not a readable"):
            load_experiment(tmp_path / "nowhere.yaml")


class TestAsked:
    def test_every_model_meets_every_condition_under_the_name_it_has_without_its_settings(self, tmp_path: Path) -> None:
        found = load(
            tmp_path, "conditions: [{name: cold, settings: {temperature: 0}}, {name: warm, settings: {temperature: 1}}]"
        )
        asked = resolve_asked_models(found, MODELS, ["mini", "deep", "baseline/uniform"])
        assert [(one.model, one.name, one.spec.name) for one in asked] == [
            ("mini", "cold", "mini"),
            ("mini", "warm", "mini@temperature=1"),
            ("deep", "cold", "deep@temperature=0"),
            ("deep", "warm", "deep"),
            ("baseline/uniform", "cold", "baseline/uniform"),
            ("baseline/uniform", "warm", "baseline/uniform"),
        ]

    def test_a_model_that_cannot_have_the_settings_is_named_with_the_condition(self, tmp_path: Path) -> None:
        found = load(tmp_path, "conditions: [{name: cold}, {name: warm, settings: {temperature: 1}}]")
        with pytest.raises(ConfigError, match=r"experiment 'e': condition 'warm': .*local/smollm2-135m does not sample"):
            resolve_asked_models(found, MODELS, ["local/smollm2-135m"])

    @pytest.mark.parametrize(
        ("conditions", "contexts"),
        [
            ("{name: own}, {name: said, settings: {temperature: 0}}", "[0, 5]"),
            ("{name: own, format: narrative}, {name: said, format: distribution-context}", "[0]"),
            ("{name: own}, {name: said, show_n: true, selection: random}", "[0]"),
        ],
    )
    def test_a_model_asked_the_same_in_two_conditions_is_refused(self, tmp_path: Path, conditions: str, contexts: str) -> None:
        """Such a comparison shows a difference of exactly 0 and looks like a finding."""
        found = load(tmp_path, f"conditions: [{conditions}]\ncontexts: {contexts}")
        with pytest.raises(ConfigError, match=r"experiment 'e': mini .* 'own' and 'said': allowed"):
            resolve_asked_models(found, MODELS, ["baseline/uniform", "mini"])
        assert len(resolve_asked_models(found, MODELS, ["baseline/uniform"])) == 2


class TestShipped:
    @pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
    def test_each_loads_is_called_as_its_file_and_names_no_model_so_it_runs_with_anyones(self, path: Path) -> None:
        found = load_experiment(path)
        assert found.name == path.stem
        assert (found.models, found.rounds) == ([], [])
        assert len(resolve_asked_models(found, MODELS, ["mini"])) == len(found.conditions)
