"""Labels of scenarios, metrics, players and outcomes on pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import BASELINE_PREFIX, NO_PERSONA, Persona


class GameDocuments(NamedTuple):
    """Scenarios and personas in words; results of unknown ones are shown without them."""

    manifests: Mapping[str, ScenarioManifest] = MappingProxyType({})
    """Scenarios by id."""
    personas: Mapping[str, Persona] = MappingProxyType({})
    """By id and version, as in `calm:v2`."""


_METRIC_TITLES = {
    "success_rate": "Won",
    "expected_return": "Mean reward",
    "volatility": "Spread of rewards",
    "steps_over_optimal": "Moves over the fewest, where solved",
    "steps_over_optimal_charged": "Moves over the fewest",
    "red_flag_rate": "Red flags",
    "red_flag_weighted": "Red flags by severity",
    "illegal_rate": "Illegal texts",
    "unparsed_rate": "Texts without a command",
    "refused_rate": "Refusals",
    "forfeit_rate": "Forfeited",
    "default_rate": "Moves made for it",
    "composite": "Composite score",
    "ef1": "Envy-free up to one item",
    "jain": "Jain's index",
}
_OUTCOME_WORDS = {"win": "won", "loss": "lost", "draw": "draw", "unsolved": "not solved", "no_agreement": "no agreement"}
SIDE_WORDS = {"higher": "higher is better", "lower": "lower is better"}
_WAY_OF_PLAYING = re.compile(r"persona (.*) against (.*), (\w+)")
_PERSONA_PLAYER = re.compile(r"([a-z0-9][a-z0-9_-]*:v\d+)@(.+)", re.DOTALL)


def format_metric_title(metric: str) -> str:
    """Return `Mean reward`, or the words of a scenario's own metric."""
    return _METRIC_TITLES.get(metric) or metric.replace("_", " ").capitalize()


def format_scenario_title(name: str) -> str:
    """Format `poker/limit-holdem` as `Limit holdem (poker)`."""
    league, _, scenario = name.partition("/")
    return f"{scenario.replace('-', ' ').capitalize()} ({league})"


def partition_words(key: str) -> str:
    """Format the partition `poker/limit-holdem` as `Limit holdem (poker)`; a league as `Poker`."""
    return format_scenario_title(key) if "/" in key else key.capitalize()


def ranked_metric_words(metric: str) -> str:
    """Format preference's names of metrics for people: `illegal_rate`, or `kuhn v1: illegal_rate`."""
    scenario, colon, name = metric.rpartition(": ")
    return f"{scenario.replace('-', ' ').capitalize()}{colon}{format_metric_title(name)}"


def describe_watched_setting(condition: str) -> str:
    """Format drift's `persona none against baseline/nash, success_rate` as `itself against nash (baseline), Won`."""
    match = _WAY_OF_PLAYING.fullmatch(condition)
    if match is None:
        return condition
    labels = PlayerLabels({}, {})
    return (
        f"{labels.persona(NO_PERSONA if match[1] == 'none' else match[1])} against {labels.opponent(match[2])}, "
        f"{format_metric_title(match[3])}"
    )


def format_outcome_words(outcome: str) -> str:
    return _OUTCOME_WORDS.get(outcome) or outcome.replace("_", " ")


def format_unit(unit: str) -> str:
    """Return the unit after a value: ` chips`; empty for shares and for units that are not plural nouns."""
    return f" {unit}" if unit.endswith("s") else ""


class PlayerLabels(NamedTuple):
    """Labels of players."""

    names: Mapping[str, str]
    """Names of models on pages, by variant."""
    personas: Mapping[str, Persona]

    def model(self, variant: str, model: str) -> str:
        """Return `nash (baseline)`, or the model's name, or its variant if there are several."""
        if model.startswith(BASELINE_PREFIX):
            return f"{model.removeprefix(BASELINE_PREFIX)} (baseline)"
        return self.names.get(variant, model)

    def persona(self, name: str) -> str:
        """Return `Calm v2` for `calm:v2`; `itself` for none."""
        if name == NO_PERSONA:
            return "itself"
        entry = self.personas.get(name)
        return f"{entry.display_name} v{entry.version}" if entry else name

    def player(self, persona: str, variant: str, model: str) -> str:
        """Return `gpt-4.1 as Calm v2`."""

        return self.name_player(self.model(variant, model), persona)

    def name_player(self, name: str, persona: str) -> str:
        """Return the same label for a model's name."""
        return name if persona == NO_PERSONA else f"{name} as {self.persona(persona)}"

    def opponent(self, name: str) -> str:
        """Return the label of a name in the column `opponent`: `baseline/nash`, `gpt-4.1`, `calm:v2@gpt-4.1`."""
        match = _PERSONA_PLAYER.fullmatch(name)
        return self.player(match[1], match[2], match[2]) if match else self.player(NO_PERSONA, name, name)
