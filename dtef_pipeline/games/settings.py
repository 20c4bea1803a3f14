"""The settings of runs of the games family: who plays which scenarios against whom, and who is asked in decision points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from dtef_pipeline.family.run_settings import ASKING_SETTINGS, ONLY_COMMAND, ONLY_PANEL, RunSettings, Setting
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import BASELINE_PREFIX
from dtef_pipeline.text.name_matching import filter_by_patterns

GAMES_PANEL_SECTION = "games"
MOST_ASKED_EPISODES = 100_000
"""Repetitions of an episode by a model, and episodes of one manifest over all its runs."""
USUAL_POINT_DRAWS = 10
STRATEGY_RESAMPLES = 1000


class PlaySettings(RunSettings):
    """What runs are given that have personas play scenarios."""

    leagues: Annotated[list[str], Setting(ONLY_COMMAND, option="--league", metavar="LEAGUE|PATTERN", unset="all")] = []
    """Only scenarios of this league."""
    scenarios: Annotated[
        list[str],
        Setting(option="--scenario", metavar="SCENARIO|LEAGUE/SCENARIO|PATTERN", unset="all that are not retired"),
    ] = []
    """Scenario to play, by name or pattern, such as 'poker/*'."""
    personas: Annotated[list[str], Setting(option="--persona", metavar="ID", unset="none")] = []
    """Persona that every model plays, or none: the model plays as itself."""
    unapproved: Annotated[bool, Setting(ONLY_COMMAND)] = False
    """Let draft and retired personas play; boards mark them. Without it, a run that names one stops before it makes calls."""


class GamesSettings(PlaySettings):
    """What runs of leagues are given."""

    players: Annotated[
        list[str], Setting(ONLY_COMMAND, option="--player", metavar="NAME", unset="none; stored episodes are scored")
    ] = []
    """Players: a model or collection that `dtef models` lists, PERSONA@MODEL, baseline/NAME where there is one, or baselines: all of each
    scenario."""
    models: Annotated[list[str], Setting(ONLY_PANEL)] = []
    """Models, or collections of them, that play at night."""
    baselines: Annotated[list[str], Setting(ONLY_PANEL)] = ["all"]
    """Baselines that play at night, by their names without `baseline/`. They cost nothing, and show whether the games stay the same."""
    opponents: Annotated[list[str], Setting(option="--opponent", metavar="NAME", unset="those of each scenario")] = []
    """Players of the other seats: a baseline, a model, or PERSONA@MODEL. Scenarios of one seat have none."""
    seeds: Annotated[str | None, Field(min_length=1), Setting(metavar="SPAN", unset="those of each scenario")] = None
    """Seeds to play, such as 1-100 or 1-10,42."""
    draws: Annotated[int, Field(ge=1, le=MOST_ASKED_EPISODES)] = 1
    """Number of times each episode of a model is asked."""
    scenario_versions: Annotated[dict[str, int], Setting(doors=())] = {}
    """By scenario, the version that is played; of one that is not named: the version in play."""
    scenario_seeds: Annotated[dict[str, str], Setting(doors=())] = {}
    """By scenario, seeds that are played in place of the others."""
    scenario_opponents: Annotated[dict[str, list[str]], Setting(doors=())] = {}
    """By scenario, opponents that every player meets in place of the others."""
    persona_versions: Annotated[dict[str, int], Setting(doors=())] = {}
    """By id of a persona, the version that the id stands for; of one that is not named: the version in play."""


class DecisionSettings(PlaySettings):
    """What runs are given that ask models in every decision point of a small game."""

    models: Annotated[list[str], Setting(option="--player", unset="none; stored answers are valued")] = []
    """Model to ask: a model or collection that `dtef models` lists, or PERSONA@MODEL."""
    draws: Annotated[int, Field(ge=1, le=MOST_ASKED_EPISODES)] = USUAL_POINT_DRAWS
    """Number of times each decision point is asked."""
    sample: Annotated[int | None, Field(ge=0), Setting(unset="all, or 100 where there are more")] = None
    """Ask only so many decision points, always the same ones; 0: all."""
    fill: Annotated[str | None, Setting(metavar="BASELINE", unset="values need all of them")] = None
    """Baseline, such as nash, that plays in the decision points that were not asked."""
    resamples: Annotated[int, Field(ge=2), Setting(doors=())] = STRATEGY_RESAMPLES
    """Resamples behind each interval."""
    seed: Annotated[int, Field(ge=0), Setting(doors=())] = 1
    """Seed of all that is drawn."""


_DEALT = ("scenario_versions", "seeds", "opponents", "scenario_seeds", "scenario_opponents")
_ENTERED = (*_DEALT, "players", "personas", "persona_versions")
GAMES_STAGE_SETTINGS = {
    "scenario_items": _DEALT,
    "episode_prompts": _ENTERED,
    "episodes": (*ASKING_SETTINGS, *_ENTERED, "unapproved", "draws"),
    "episode_scores": ("snapshot", "scenario_versions"),
}
"""By stage of a league, the settings that it takes."""
DECISION_STAGE_SETTINGS = {
    "decision_answers": (*ASKING_SETTINGS, "models", "personas", "unapproved", "draws", "sample"),
    "strategy_values": ("snapshot", "fill", "resamples", "seed"),
}
"""By stage of decision points, likewise."""


def select_scenarios(panel: GamesSettings, manifests: Mapping[str, ScenarioManifest]) -> list[str]:
    """The scenarios of a panel among `manifests`, in their order; a retired one only by its name. Raises ConfigError."""
    patterns = [scenario if "/" in scenario else f"*/{scenario}" for scenario in panel.scenarios]
    names = filter_by_patterns(list(manifests), patterns, f"{GAMES_PANEL_SECTION}.scenarios:") if patterns else []
    return [name for name in names if manifests[name].status != "retired" or name in patterns]


def list_panel_players(panel: GamesSettings) -> list[str]:
    """The models of a panel, and its baselines by their full names."""
    return [*panel.models, *(f"{BASELINE_PREFIX}{name.removeprefix(BASELINE_PREFIX)}" for name in panel.baselines)]
