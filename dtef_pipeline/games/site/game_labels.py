"""Labels of scenarios, metrics, players and outcomes on pages."""

from __future__ import annotations

import re
from collections import Counter
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
_WAY_OF_PLAYING = re.compile(r"persona (.*) against (.*), (\w+)")
_PERSONA_PLAYER = re.compile(r"([a-z0-9][a-z0-9_-]*:v\d+)@(.+)", re.DOTALL)


def format_metric_title(metric: str) -> str:
    """Return `Mean reward`, or the words of a scenario's own metric."""
    return _METRIC_TITLES.get(metric) or metric.replace("_", " ").capitalize()


def format_scenario_title(name: str) -> str:
    """Format `poker/limit-holdem` as `Limit holdem (poker)`; a name without a league, such as `poker`, as `Poker`."""
    league, _, scenario = name.rpartition("/")
    title = scenario.replace("-", " ").capitalize()
    return f"{title} ({league})" if league else title


def format_ranked_metric(metric: str) -> str:
    """Format preference's names of metrics for people: `illegal_rate`, or `kuhn v1: illegal_rate`."""
    scenario, colon, name = metric.rpartition(": ")
    return f"{format_scenario_title(scenario)}{colon}{format_metric_title(name)}"


def describe_watched_setting(condition: str) -> str:
    """Format drift's `persona none against baseline/nash, success_rate` as `itself against nash (baseline), Won`."""
    match = _WAY_OF_PLAYING.fullmatch(condition)
    if match is None:
        return condition
    way = "itself" if match[1] == "none" else match[1]
    return f"{way} against {PlayerLabels({}, {}).opponent(match[2])}, {format_metric_title(match[3])}"


def format_outcome_words(outcome: str) -> str:
    return _OUTCOME_WORDS.get(outcome) or outcome.replace("_", " ")


class PlayerLabels(NamedTuple):
    """Labels of players; each player has its own."""

    names: Mapping[str, str]
    """Names of models on pages, by variant."""
    personas: Mapping[str, str]
    """Titles of personas, by id and version."""

    def model(self, variant: str, model: str) -> str:
        """Return `nash (baseline)`, or the model's name, or its variant if there are several."""
        if model.startswith(BASELINE_PREFIX):
            return f"{model.removeprefix(BASELINE_PREFIX)} (baseline)"
        return self.names.get(variant, model)

    def player(self, persona: str, variant: str, model: str) -> str:
        """Return `gpt-4.1 as Calm v2`."""
        name = self.model(variant, model)
        return name if persona == NO_PERSONA else f"{name} as {self.personas.get(persona, persona)}"

    def opponent(self, name: str) -> str:
        """Return the label of a name in the column `opponent`: `baseline/nash`, `gpt-4.1`, `calm:v2@gpt-4.1`."""
        match = _PERSONA_PLAYER.fullmatch(name)
        return self.player(match[1], match[2], match[2]) if match else self.player(NO_PERSONA, name, name)


def title_personas(personas: Mapping[str, Persona]) -> dict[str, str]:
    """Return the title of each persona, `Calm v2` for `calm:v2`; of personas with the same title, their ids and versions."""
    titles = {name: f"{persona.display_name} v{persona.version}" for name, persona in personas.items()}
    counts = Counter(titles.values())
    return {name: title if counts[title] == 1 else name for name, title in titles.items()}
