"""Which games are played every night: the section `games` of the panel file. Without scenarios: none.

games:
  scenarios: ["poker/*", thirteen]
  models: [gpt-4.1-mini]
  personas: [none, cautious]
  baselines: [all]
  opponents: [random]
  seeds: 1-20
  draws: 1
  max_cost_usd: 5
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dtef_pipeline.asking.role_budgets import RoleBudget, RoleName
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.text.nearest import nearest

GAMES_PANEL_SECTION = "games"


class GamesPanel(Part):
    """What a night plays. The settings are those of `dtef games run`."""

    scenarios: list[str] = []
    """Names, or patterns with * and ?: `kuhn`, `poker/*`."""
    models: list[str] = []
    """Models, or collections of them."""
    personas: list[str] = []
    """Ids of those that every model plays, or `none`: as itself; empty: as itself."""
    baselines: list[str] = ["all"]
    """Names without `baseline/`. They cost nothing, and show whether the games are the same ones every night."""
    opponents: list[str] = []
    """Baselines, models or persona@model; empty: those of each scenario."""
    seeds: Annotated[str, Field(min_length=1)] | None = None
    """Seeds, such as 1-100 or 1-10,42; none: those of each scenario."""
    draws: Annotated[int, Field(ge=1)] = 1
    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    """What a night may spend."""
    max_calls: Annotated[int, Field(ge=0)] | None = None
    role_budgets: dict[RoleName, RoleBudget] = {}
    """What a night may use of all models in one role; players and opponents are candidates."""

    def chosen(self, known: Mapping[str, ScenarioManifest]) -> list[str]:
        """The scenarios of the panel among those `known`, in their order; a retired one only by its name. Raises ConfigError for a pattern that
        none fits.
        """
        patterns = [one if "/" in one else f"*/{one}" for one in self.scenarios]
        for given, pattern in zip(self.scenarios, patterns, strict=True):
            if not any(fnmatchcase(name, pattern) for name in known):
                raise ConfigError(f"{GAMES_PANEL_SECTION}.scenarios: {given!r} fits none; known: {nearest(given, known)}")
        named = {name for name, manifest in known.items() if manifest.status == "retired" and name not in patterns}
        return [name for name in known if name not in named and any(fnmatchcase(name, pattern) for pattern in patterns)]

    @property
    def players(self) -> list[str]:
        """The models, and the baselines by their full names."""
        return [*self.models, *(f"{BASELINE_PREFIX}{name.removeprefix(BASELINE_PREFIX)}" for name in self.baselines)]

    def run_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration of each stage, by its name."""
        dealt = {"opponents": self.opponents, **({} if self.seeds is None else {"seeds": self.seeds})}
        entered = {**dealt, "players": self.players, "personas": self.personas}
        bounds = {"max_cost_usd": self.max_cost_usd, "max_calls": self.max_calls}
        roles = {role: budget.model_dump(exclude_none=True) for role, budget in self.role_budgets.items()}
        asking: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
        asking |= {"snapshot": snapshot, **({"role_budgets": roles} if roles else {})}
        return {
            "scenario_items": dealt,
            "episode_prompts": entered,
            "episodes": {**entered, **asking, "draws": self.draws},
            "episode_scores": {"snapshot": snapshot},
        }


def load_games_panel(path: Path) -> GamesPanel | None:
    """The section of a panel file; None where it has none. Raises ConfigError with file, line, what arrived and what is allowed."""
    return read_document(path, "panel file", [GAMES_PANEL_SECTION]).section(GAMES_PANEL_SECTION, GamesPanel)
