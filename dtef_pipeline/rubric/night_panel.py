"""What is asked of rubrics every night: the section `rubric` of the panel file, all of it optional:

rubric:
  blueprints: ["compass__*"]
  models: [gpt-4.1-mini]
  judges: [standard=gpt-4.1-mini]
  draws: 2
  scale: 5
  anchors: 200
  max_cost_usd: 5
  role_budgets: {judge: {max_cost_usd: 3}}
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.asking.role_budgets import RoleBudget, RoleName
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.nearest import nearest

PANEL_SECTION = "rubric"
_RUBRIC_SWITCHES = (
    *("judge_draws", "scale", "analysts", "extract_points", "no_own_judge", "with_labels", "embedder"),
    *("beta", "or_paths", "should_not_paths", "consistent_champions"),
)


class RubricAsked(Part):
    """What is asked of rubrics, on a night or once. Empty lists stand for what each blueprint names, or for the usual ones."""

    blueprints: Annotated[list[str], Field(min_length=1)] = ["*"]
    """Ids, or patterns with * and ?."""
    models: list[str] = []
    judges: list[str] = []
    """APPROACH=MODEL each."""
    analysts: list[str] = []
    draws: Draws = 1
    judge_draws: Draws = 1
    scale: Literal[5, 10] = 5
    """Classes that judges choose from."""
    extract_points: bool = False
    """Whether an analyst lists key points of ideal answers without criteria."""
    role_budgets: dict[RoleName, RoleBudget] = {}
    """What a run may use of all models in one role; judging anchors is judging."""

    @property
    def bounds(self) -> dict[str, Any]:
        """What all stages may use together, by the names of the stages' settings."""
        return {}

    def chosen(self, known: Sequence[str]) -> list[str]:
        """The blueprints of the panel among those `known`, in their order. Raises ConfigError for a pattern that none has."""
        for pattern in self.blueprints:
            if known and not any(fnmatchcase(key, pattern) for key in known):
                raise ConfigError(
                    f"{PANEL_SECTION}.blueprints: {pattern!r} is no blueprint that was added; added: {nearest(pattern, known)}"
                )
        return [key for key in known if any(fnmatchcase(key, pattern) for pattern in self.blueprints)]

    def run_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration of each stage, by its name."""
        of_snapshot, asking = {"snapshot": snapshot}, self._asking(snapshot)
        extracting = {**asking, "extract_points": True, "analysts": self.analysts}
        return {
            **({"rubric_blueprints": extracting} if self.extract_points else {}),
            "rubric_responses": {**asking, "models": self.models, "draws": self.draws},
            "rubric_judgements": {**asking, "judges": self.judges, "judge_draws": self.judge_draws, "scale": self.scale},
            "rubric_embeddings": asking,
            "rubric_points": of_snapshot,
            "rubric_scores": of_snapshot,
            "rubric_summaries": {**asking, "analysts": self.analysts},
        }

    def _asking(self, snapshot: str) -> dict[str, Any]:
        """What all stages that ask are told."""
        roles = {role: budget.model_dump(exclude_none=True) for role, budget in self.role_budgets.items()}
        return {"snapshot": snapshot, **self.bounds, **({"role_budgets": roles} if roles else {})}


class RubricPanel(RubricAsked):
    """What a night asks of rubrics; and how responses are judged and scored, at night and by `dtef rubric run`."""

    no_own_judge: bool = False
    """Whether judgements of a model by a judge of its own maker are left out."""
    with_labels: bool = False
    """Whether people's labels overrule the judges where there are any."""
    embedder: Annotated[str, Field(min_length=1)] | None = None
    """Model that embeds texts for similarity; none: the one on this machine."""
    beta: Annotated[float, Field(ge=0, le=1)] = 0.35
    """Weight of similarity in the hybrid score."""
    or_paths: Literal["document", "two_group"] = "document"
    """How alternative paths count: as one point of weight 1, or as much as all required points."""
    should_not_paths: Literal["worst", "max"] = "worst"
    """Which alternative path of should_not counts: the one that is met most, or least."""
    consistent_champions: bool = False
    """Whether a champion needs a grade of 5 or more in 80 % of the latest 5 blueprints that it is graded in."""
    anchors: Annotated[int, Field(ge=0)] = 0
    """How many pairs of a stored response and a criterion judges are shown again, so that a drift of judges is told apart from one of models."""
    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    """What all stages of a night may spend together, the anchors included."""

    @property
    def bounds(self) -> dict[str, Any]:
        return {} if self.max_cost_usd is None else {"max_cost_usd": self.max_cost_usd}

    @property
    def switches(self) -> dict[str, Any]:
        """How responses are judged and scored, by the names of the settings of `dtef rubric run`."""
        return self.model_dump(include=set(_RUBRIC_SWITCHES))

    def run_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        config = super().run_config(snapshot)
        embedder = {"embedder": self.embedder} if self.embedder else {}
        policy = self.model_dump(include={"beta", "or_paths", "should_not_paths", "no_own_judge"})
        return {
            **config,
            "rubric_embeddings": {**config["rubric_embeddings"], **embedder},
            "rubric_points": {**config["rubric_points"], **self.model_dump(include={"no_own_judge", "with_labels"})},
            "rubric_scores": {**config["rubric_scores"], **policy, **embedder},
        }

    def anchors_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration of `rubric_anchors`, by its name; empty where the panel asks for no anchors."""
        if not self.anchors:
            return {}
        return {"rubric_anchors": {**self._asking(snapshot), "judges": self.judges, "scale": self.scale, "n": self.anchors}}


def load_rubric_panel(path: Path) -> RubricPanel | None:
    """The section of a panel file; None where it has none. Raises ConfigError with file, line, what arrived and what is allowed."""
    return read_document(path, "panel file", [PANEL_SECTION]).section(PANEL_SECTION, RubricPanel)
