"""The settings of runs of the games family: players, scenarios and opponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from dtef_pipeline.family.run_settings import ASKING_SETTINGS, ONLY_COMMAND, ONLY_PANEL, RunSettings, Setting, make_validator
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import BASELINE_PREFIX
from dtef_pipeline.text.name_matching import filter_by_patterns

GAMES_PANEL_SECTION = "games"
MAX_EPISODES = 100_000
"""Largest number of draws of an episode by a model, and of episodes of one manifest over all its runs."""


def _require_seeds(text: str | None) -> None:
    from dtef_pipeline.games.episode_items import parse_seed_spans  # loads pyarrow, which `dtef --help` must not

    if text:
        parse_seed_spans(text)


class PlaySettings(RunSettings):
    """Settings of runs in which models play scenarios as personas."""

    leagues: Annotated[list[str], Setting(ONLY_COMMAND, option="--league", metavar="LEAGUE|PATTERN", unset="all")] = []
    """Restrict the run to scenarios of this league."""
    scenarios: Annotated[
        list[str], Setting(option="--scenario", metavar="SCENARIO|LEAGUE/SCENARIO|PATTERN", unset="all but retired ones")
    ] = []
    """Scenario to play, by name or pattern, such as 'poker/*'."""
    personas: Annotated[list[str], Setting(option="--persona", metavar="ID", unset="none")] = []
    """Persona that every model plays; none: the model plays as itself."""
    unapproved: Annotated[bool, Setting(ONLY_COMMAND)] = False
    """Allow draft and retired personas, which boards mark. Without it, a run that names one stops before it makes calls."""


class GamesSettings(PlaySettings):
    """Settings of runs of leagues."""

    players: Annotated[
        list[str], Setting(ONLY_COMMAND, option="--player", metavar="NAME", unset="none; only stored episodes are scored")
    ] = []
    """Player: a model or collection that `dtef models` lists, PERSONA@MODEL, baseline/NAME, or `baselines` for all baselines of each
    scenario."""
    models: Annotated[list[str], Setting(ONLY_PANEL)] = []
    """Models, or collections of them, that play in nightly runs."""
    baselines: Annotated[list[str], Setting(ONLY_PANEL)] = ["all"]
    """Baselines that play in nightly runs, by their names without `baseline/`. They cost nothing and show whether the games stay the same."""
    opponents: Annotated[list[str], Setting(option="--opponent", metavar="NAME", unset="those of each scenario")] = []
    """Player of the other seats: a baseline, a model, or PERSONA@MODEL. Scenarios with one seat have no opponents."""
    seeds: Annotated[
        str | None,
        Field(min_length=1),
        make_validator(_require_seeds, "seeds "),
        Setting(metavar="SPAN", unset="those of each scenario"),
    ] = None
    """Seeds to play, such as 1-100 or 1-10,42."""
    draws: Annotated[int, Field(ge=1, le=MAX_EPISODES)] = 1
    """Number of times each model plays each episode."""
    scenario_versions: Annotated[dict[str, int], Setting(doors=())] = {}
    """Version to play by scenario; for a scenario without an entry, the version in play."""
    scenario_seeds: Annotated[dict[str, str], Setting(doors=())] = {}
    """Seeds by scenario, which replace the others."""
    scenario_opponents: Annotated[dict[str, list[str]], Setting(doors=())] = {}
    """Opponents by scenario, which replace the others."""
    persona_versions: Annotated[dict[str, int], Setting(doors=())] = {}
    """Version of a persona by its id; for an id without an entry, the version in play."""


_ITEM_SETTINGS = ("scenario_versions", "seeds", "opponents", "scenario_seeds", "scenario_opponents")
_MATCH_SETTINGS = (*_ITEM_SETTINGS, "players", "personas", "persona_versions")
GAMES_STAGE_SETTINGS = {
    "scenario_items": _ITEM_SETTINGS,
    "episode_prompts": _MATCH_SETTINGS,
    "episodes": (*ASKING_SETTINGS, *_MATCH_SETTINGS, "unapproved", "draws"),
    "episode_scores": ("snapshot", "scenario_versions"),
}
"""Settings by stage of a league."""


def select_scenarios(panel: GamesSettings, manifests: Mapping[str, ScenarioManifest]) -> list[str]:
    """Return the scenarios of a panel among `manifests`, in their order; a retired one must be named. Raises ConfigError for a name without
    a match."""
    patterns = [scenario if "/" in scenario else f"*/{scenario}" for scenario in panel.scenarios]
    names = filter_by_patterns(list(manifests), patterns, f"{GAMES_PANEL_SECTION}.scenarios:") if patterns else []
    return [name for name in names if manifests[name].status != "retired" or name in patterns]


def list_panel_players(panel: GamesSettings) -> list[str]:
    """Return the models of a panel, and its baselines by their full names."""
    return [*panel.models, *(f"{BASELINE_PREFIX}{name.removeprefix(BASELINE_PREFIX)}" for name in panel.baselines)]
