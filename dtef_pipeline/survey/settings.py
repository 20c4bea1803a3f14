"""The settings of runs of the survey family: which rounds and segments are asked, of whom, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.asking.models import Budget, Models, ModelSpec, strip_settings
from dtef_pipeline.asking.role_budgets import RoleBudget, RoleName
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import (
    ASKING_SETTINGS,
    NOT_COMMAND,
    ONLY_COMMAND,
    ONLY_PANEL,
    RunSettings,
    Setting,
    run_config,
)
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.text.name_matching import list_nearest

if TYPE_CHECKING:
    from dtef_pipeline.survey.question_draw import Sample

Drawn = Annotated[int | None, Field(ge=1, le=1_000_000)]
"""How many questions, or segments, of a round are asked; None: all."""


def _validate_each(spell: Callable[[str], str]) -> AfterValidator:
    """Each text of a list in its one spelling; `spell` raises ConfigError for one that is not allowed."""

    def spell_all(texts: list[str]) -> list[str]:
        try:
            return [spell(text) for text in texts]
        except ConfigError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(spell_all)


def _spell_condition(text: str) -> str:
    """As blueprints spell it. The words of an experiment's own system prompt are not known here."""
    return text if "+system=" in text else BlueprintOptions.parse_condition(text).condition


class SurveySettings(RunSettings):
    """What runs of survey rounds are given. Empty lists of rounds and segments stand for all there are."""

    max_tokens: Annotated[int | None, Field(ge=0), Setting(ONLY_PANEL)] = None
    """Tokens that the run may use, of prompts and responses."""
    budgets: Annotated[dict[str, Budget], Setting(NOT_COMMAND)] = {}
    """By model, what the run may use of it, in place of the models file's: max_cost_usd, max_calls, max_tokens."""
    role_budgets: Annotated[dict[RoleName, RoleBudget], Setting(doors=())] = {}
    """By role, what the run may use of models in it: max_cost_usd, max_calls."""
    rounds: Annotated[list[str], Setting(option="--round", metavar="ROUND")] = []
    """Round to evaluate."""
    segments: Annotated[list[str], Setting(option="--segment", unset="all")] = []
    """Segment to evaluate, such as country:kenya."""
    models: Annotated[list[str], Setting(option="--model", unset="baselines")] = ["baselines"]
    """Model to ask: a model or collection that `dtef models` lists, or a model string of LiteLLM. Settings follow an @, as in
    gpt-4.1-mini@temperature=0.7,max_tokens=512."""
    models_of: Annotated[dict[str, list[str]], Setting(doors=())] = {}
    """For a condition, the models asked in it instead of `models`; baselines are asked in all."""
    temperature: Annotated[float | None, Field(ge=0, le=2), Setting(NOT_COMMAND)] = 0.0
    """Temperature of every language model that takes one and states none itself; null: each model's own."""
    context_levels: Annotated[
        list[str],
        BeforeValidator(ContextLevel.convert_numbers),
        _validate_each(lambda level: str(ContextLevel(level))),
        Setting(option="--context", unset="0"),
    ] = []
    """Number of context questions: other questions, shown with the group's answers; or all."""
    conditions: Annotated[
        list[str],
        _validate_each(_spell_condition),
        Setting(option="--condition", metavar="TASK[/FORMAT][+WORD...]", unset="distribution/attribute-label"),
    ] = [BlueprintOptions().condition]
    """Way of asking, such as shift/narrative+cot or batch=3+tokens=8000: a task (distribution, shift, synthetic-individuals, batch), a format of
    context questions (attribute-label, distribution-context, narrative) and words (cot, structured, reversed, random, show-n, population,
    rotated-N, system=ID, seed=N, tokens=N, reserve=N). In a panel file an empty list means all existing conditions."""
    system_prompts: Annotated[dict[str, str], Setting(doors=())] = {}
    """Words of system prompts that are not shipped, by id."""
    keep_earlier: Annotated[bool, Setting(doors=())] = True
    """Also keep the prompts of conditions and context levels that earlier runs made."""
    questions: Annotated[Drawn, Setting(unset="all")] = None
    """Number of questions to ask of each round, drawn over its batteries."""
    sample_segments: Annotated[Drawn, Setting(unset="all")] = None
    """Number of segments to ask each question of, drawn over their attributes."""
    draws: Draws = 1
    """Number of times each prompt is asked."""
    limits: Annotated[dict[str, int], Setting(doors=())] = {}
    """At most so many prompts of the run in each condition for a model, by its name."""
    metric: Annotated[Literal["js", "cosine", "emd", "emd_normalized", "tv", "mae", "top_hit"], Setting(ONLY_COMMAND)] = "js"
    """Metric that counts as the score."""
    from_store: Annotated[bool, Setting(ONLY_COMMAND)] = False
    """Rebuild the partitions from all stored responses to their prompts. Calls no model unless --model is given."""
    only_snapshot: Annotated[str | None, Setting(doors=())] = None
    """Score and aggregate this snapshot only; none: all there are."""

    @property
    def sample(self) -> Sample:
        """Which part of a round is asked."""
        from dtef_pipeline.survey.question_draw import Sample

        return Sample(self.questions, self.sample_segments)


_WAYS = ("conditions", "context_levels")
SURVEY_STAGE_SETTINGS = {
    "survey_responses": (),
    "blueprints": (*_WAYS, "system_prompts", "keep_earlier"),
    "predictions": (
        *ASKING_SETTINGS,
        *_WAYS,
        "models",
        "models_of",
        "questions",
        "sample_segments",
        "draws",
        "limits",
        "from_store",
    ),
    "scores": ("metric", "only_snapshot"),
    "segment_results": ("only_snapshot",),
    "drift_checks": (),
}
"""By stage, the settings that it takes."""


def build_survey_run_config(settings: SurveySettings) -> dict[str, dict[str, Any]]:
    """Run configuration of the stages that take any: one snapshot is asked, scored and aggregated.

    Conditions are named though they are as usual: whoever looks up what a run asked finds them there.
    """
    stages: Mapping[str, tuple[str, ...]] = {name: names for name, names in SURVEY_STAGE_SETTINGS.items() if names}
    config = run_config(settings.model_copy(update={"only_snapshot": settings.snapshot}), stages)
    for stage in ("blueprints", "predictions"):
        config[stage]["conditions"] = settings.conditions
    return config


def resolve_panel(panel: SurveySettings, models: Models) -> tuple[ModelSpec, ...]:
    """The models of a panel or a manifest, at its temperature. Raises ConfigError for one that is not known."""
    return models.resolve([spec.name for selector in panel.models for spec in _resolve_at_temperature(panel, selector, models)])


def resolve_panel_budgets(panel: SurveySettings, models: Models) -> dict[str, Budget]:
    """Budgets by the names that models are asked by. Raises ConfigError for one of a model that is not asked."""
    specs = {spec.name: spec for spec in resolve_panel(panel, models)}
    budgets: dict[str, Budget] = {}
    for selector, budget in panel.budgets.items():
        for spec in _resolve_at_temperature(panel, selector, models):
            if spec.name not in specs:
                raise ConfigError(f"budgets.{selector}: allowed: a model that is asked: {', '.join(specs)}")
            bounds = {**spec.budget.model_dump(exclude_none=True), **budget.model_dump(exclude_none=True)}
            budgets[spec.name] = Budget.model_validate(bounds)
    return budgets


def resolve_panel_models(panel: SurveySettings, models: Models) -> SurveySettings:
    """The settings with each model, and each budget, under the name that it is asked by. Raises ConfigError as `resolve_panel_budgets`."""
    names = [spec.name for spec in resolve_panel(panel, models)]
    return panel.model_copy(update={"models": names, "budgets": resolve_panel_budgets(panel, models)})


def _resolve_at_temperature(panel: SurveySettings, selector: str, models: Models) -> Iterator[ModelSpec]:
    """What a selector stands for. One that says a temperature keeps it, as do models that have or take none."""
    says_so = "temperature=" in selector.removeprefix(strip_settings(selector))
    for spec in models.resolve([selector]):
        fixed = spec.is_computed or spec.is_local or spec.temperature is None
        if says_so or fixed or panel.temperature is None:
            yield spec
        else:
            yield from models.resolve([spec.name], {"temperature": panel.temperature})


def select_panel_partitions(panel: SurveySettings, partitions: Sequence[str]) -> list[str]:
    """The partitions of a panel among those `partitions`, in their order. Raises ConfigError for a round or a segment that is not there."""
    rounds = [split_partition_key(key)[0] for key in partitions]
    if absent := sorted(set(panel.rounds) - set(rounds)):
        names = ", ".join(sorted(set(rounds), key=make_round_order)) or "none"
        raise ConfigError(f"rounds: {_format_given_names(absent)} not ingested; ingested: {names}")
    of_rounds = [key for key, round_id in zip(partitions, rounds, strict=True) if not panel.rounds or round_id in panel.rounds]
    segments = {split_partition_key(key)[1] for key in of_rounds}
    if absent := sorted(set(panel.segments) - segments):
        raise ConfigError(
            f"segments: {_format_given_names(absent)} in none of the chosen rounds; their segments: {list_nearest(absent[0], segments)}"
        )
    return [key for key in of_rounds if not panel.segments or split_partition_key(key)[1] in panel.segments]


def _format_given_names(names: Sequence[str]) -> str:
    """Names as they arrived; those that would turn round the words beside them, spelled out."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)
