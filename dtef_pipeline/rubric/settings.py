"""The settings of runs of the rubric family: blueprints, models, judges and scoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from dtef_pipeline.asking.calls import Draws
from dtef_pipeline.family.run_settings import ASKING_SETTINGS, NOT_COMMAND, ONLY_PANEL, RunSettings, Setting
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.text.name_matching import filter_by_patterns

RUBRIC_PANEL_SECTION = "rubric"
OFFLINE_EMBEDDER = "local/minilm-l6-int8"
"""The embedder that needs no server."""
REPORT_CHARACTERS = 400_000
"""Default limit on the characters of a report, some 100,000 tokens."""


class RubricSettings(RunSettings):
    """Settings of runs of blueprints. Empty lists select the values that each blueprint names, or the defaults."""

    blueprints: Annotated[list[str], Field(min_length=1), Setting(option="--blueprint", metavar="ID|PATTERN", unset="all")] = [
        "*"
    ]
    """Blueprint to evaluate, by name or pattern, such as 'compass__*'."""
    models: Annotated[list[str], Setting(option="--model", unset="the models that each blueprint names")] = []
    """Model to ask: a model or collection that `dtef models` lists, or a model string of LiteLLM."""
    draws: Draws = 1
    """Number of responses to each prompt."""
    judges: Annotated[
        list[str],
        Setting(
            option="--judge",
            metavar="APPROACH=MODEL",
            unset="those of the blueprint, else standard and prompt-aware with the models of the collection `judges`",
        ),
    ] = []
    """Judge: its approach (standard, prompt-aware or holistic) and its model."""
    judge_draws: Annotated[Draws, Setting(NOT_COMMAND)] = 1
    """Repeated judgements of each criterion by each judge."""
    scale: Annotated[Literal[5, 10], Setting(NOT_COMMAND)] = 5
    """Classes that judges choose from: 5, or upstream's 10."""
    analysts: Annotated[list[str], Setting(NOT_COMMAND)] = []
    """Models that summarise, by name, collection or model string of LiteLLM; the first one extracts key points."""
    extract_points: Annotated[bool, Setting(NOT_COMMAND)] = False
    """Have an analyst list the key points of each ideal answer whose prompt has no criteria; they become criteria."""
    no_own_judge: Annotated[bool, Setting(ONLY_PANEL)] = False
    """Leave out judgements of responses by models of the judge's own maker."""
    with_labels: Annotated[bool, Setting(ONLY_PANEL)] = False
    """Use people's labels instead of judgements if there are any; the judges' score stays in `judge_score`."""
    embedder: Annotated[str, Field(min_length=1), Setting(ONLY_PANEL)] = OFFLINE_EMBEDDER
    """Model that embeds texts for similarity: by name, or as a model string of LiteLLM."""
    beta: Annotated[float, Field(ge=0, le=1), Setting(ONLY_PANEL)] = 0.35
    """Weight of similarity in the hybrid score."""
    or_paths: Annotated[Literal["document", "two_group"], Setting(ONLY_PANEL)] = "document"
    """How alternative paths count: as one point of weight 1, or as much as all required points."""
    should_not_paths: Annotated[Literal["worst", "max"], Setting(ONLY_PANEL)] = "worst"
    """Which alternative path of should_not counts: the one that is met most, or least."""
    consistent_champions: Annotated[bool, Setting(ONLY_PANEL)] = False
    """Require a grade of 5 or more in 80 % of the latest 5 graded blueprints of a champion."""
    report_characters: Annotated[int, Field(ge=1), Setting(doors=())] = REPORT_CHARACTERS
    """Maximum number of characters of a report to an analyst."""
    anchors: Annotated[int, Field(ge=0), Setting(ONLY_PANEL)] = 0
    """Number of pairs of a stored response and a criterion that judges judge again, to separate judge drift from model drift."""
    anchor_seed: Annotated[int, Field(ge=0), Setting(doors=())] = SEED
    """Seed of the choice of new anchors."""


RUBRIC_STAGE_SETTINGS = {
    "rubric_blueprints": (*ASKING_SETTINGS, "extract_points", "analysts"),
    "rubric_responses": (*ASKING_SETTINGS, "models", "draws"),
    "rubric_judgements": (*ASKING_SETTINGS, "judges", "judge_draws", "scale"),
    "rubric_embeddings": (*ASKING_SETTINGS, "embedder"),
    "rubric_points": ("snapshot", "no_own_judge", "with_labels"),
    "rubric_scores": ("snapshot", "beta", "or_paths", "should_not_paths", "embedder", "no_own_judge"),
    "rubric_summaries": (*ASKING_SETTINGS, "analysts", "report_characters"),
}
"""Settings by stage."""
RUBRIC_ANCHOR_SETTINGS = (*ASKING_SETTINGS, "judges", "scale", "anchors", "anchor_seed")


def select_panel_blueprints(panel: RubricSettings, blueprints: Sequence[str]) -> list[str]:
    """Return the panel's blueprints among `blueprints`, in their order. Raises ConfigError if a pattern matches none."""
    return filter_by_patterns(blueprints, panel.blueprints, f"{RUBRIC_PANEL_SECTION}.blueprints:") if blueprints else []
