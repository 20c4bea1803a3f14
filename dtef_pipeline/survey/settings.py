"""The settings of runs of the survey family: rounds, segments, models and conditions; and the panel, which every night repeats.

The keys of the panel are at the top of the panel file, next to the sections of other families:

    models: [gpt-4.1-mini, "claude-haiku-4.5@max_tokens=512"]
    rounds: [GD4]
    context_levels: [0, all]
    max_cost_usd: 5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dtef_pipeline.asking.calls import Draws
from dtef_pipeline.asking.daily_budget import RoleBudget, RoleName
from dtef_pipeline.asking.models import Budget, Models, ModelSpec, strip_settings
from dtef_pipeline.documents import Document, Place, format_path, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import (
    ASKING_SETTINGS,
    NOT_COMMAND,
    ONLY_COMMAND,
    ONLY_PANEL,
    Door,
    RunSettings,
    Setting,
    list_settings_at,
    load_panel_settings,
    run_config,
)
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.text.name_matching import list_nearest

if TYPE_CHECKING:
    from dtef_pipeline.survey.question_draw import Sample

Drawn = Annotated[int | None, Field(ge=1, le=1_000_000)]
"""Number of questions, or of segments, of a round; None: all."""


def _validate_each(spell: Callable[[str], str]) -> AfterValidator:
    """Return a validator of each text of a list, in its canonical spelling. `spell` raises ConfigError if one is not allowed."""

    def spell_all(texts: list[str]) -> list[str]:
        try:
            return [spell(text) for text in texts]
        except ConfigError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(spell_all)


class SurveySettings(RunSettings):
    """Settings of runs of survey rounds. Empty lists of rounds and segments mean all; of conditions, all that exist."""

    max_tokens: Annotated[int | None, Field(ge=0), Setting(ONLY_PANEL)] = None
    """Maximum number of tokens of the run, in prompts and responses."""
    budgets: Annotated[dict[str, Budget], Setting(NOT_COMMAND)] = {}
    """Budget by model, instead of that of the models file: max_cost_usd, max_calls, max_tokens."""
    role_budgets: Annotated[dict[RoleName, RoleBudget], Setting(doors=())] = {}
    """Budget by role: max_cost_usd, max_calls."""
    rounds: Annotated[list[str], Setting(option="--round", metavar="ROUND")] = []
    """Round to evaluate."""
    segments: Annotated[list[str], Setting(option="--segment", unset="all")] = []
    """Segment to evaluate, such as country:kenya."""
    models: Annotated[list[str], Setting(option="--model", unset="baselines")] = ["baselines"]
    """Model to ask: a model or collection that `dtef models` lists, or a model string of LiteLLM. Settings follow an @, as in
    gpt-4.1-mini@temperature=0.7,max_tokens=512."""
    temperature: Annotated[float | None, Field(ge=0, le=2), Setting(NOT_COMMAND)] = 0.0
    """Temperature of every language model that accepts one and sets none itself; null: each model's default."""
    context_levels: Annotated[
        list[str],
        BeforeValidator(ContextLevel.convert_numbers),
        _validate_each(lambda level: str(ContextLevel(level))),
        Setting(option="--context", unset="0"),
    ] = []
    """Number of context questions: other questions, shown with the group's answers; or all."""
    conditions: Annotated[
        list[str],
        _validate_each(lambda text: text if "+system=" in text else BlueprintOptions.parse_condition(text).condition),
        Setting(option="--condition", metavar="TASK[/FORMAT][+FLAG...]", unset="distribution/attribute-label"),
    ] = [BlueprintOptions().condition]
    """Condition, such as shift/narrative+cot or batch=3+tokens=8000: a task (distribution, shift, synthetic-individuals, batch), a format of
    context questions (attribute-label, distribution-context, narrative) and flags (cot, structured, reversed, random, show-n, population,
    rotated-N, system=ID, seed=N, tokens=N, reserve=N)."""
    system_prompts: Annotated[dict[str, str], Setting(doors=())] = {}
    """Texts of system prompts that are not shipped, by id."""
    keep_earlier: Annotated[bool, Setting(doors=())] = True
    """Also keep the prompts of conditions and context levels that earlier runs made."""
    questions: Annotated[Drawn, Setting(unset="all")] = None
    """Number of questions of each round, spread over its batteries."""
    sample_segments: Annotated[Drawn, Setting(unset="all")] = None
    """Number of segments for each question, spread over their attributes."""
    draws: Draws = 1
    """Number of responses to each prompt."""
    limits: Annotated[dict[str, int], Setting(doors=())] = {}
    """By model name, the maximum number of prompts in each condition of the run."""
    metric: Annotated[Literal["js", "cosine", "emd", "emd_normalized", "tv", "mae", "top_hit"], Setting(ONLY_COMMAND)] = "js"
    """Metric that counts as the score."""
    from_store: Annotated[bool, Setting(ONLY_COMMAND)] = False
    """Rebuild the partitions from all stored responses to their prompts. Calls no model unless --model is given."""
    only_snapshot: Annotated[str | None, Setting(doors=())] = None
    """Score and aggregate this snapshot only; null: all snapshots."""

    @property
    def sample(self) -> Sample:
        """The part of each round to request."""
        from dtef_pipeline.survey.question_draw import Sample

        return Sample(self.questions, self.sample_segments)


_CONDITION_FIELDS = ("conditions", "context_levels")
SURVEY_STAGE_SETTINGS = {
    "survey_responses": (),
    "blueprints": (*_CONDITION_FIELDS, "system_prompts", "keep_earlier"),
    "predictions": (
        *ASKING_SETTINGS,
        *_CONDITION_FIELDS,
        "models",
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
    """Return the run configuration of the stages with settings, which requests, scores and aggregates one snapshot.

    Conditions are listed even if they are the default, so that the configuration of a run shows them.
    """
    stages: Mapping[str, tuple[str, ...]] = {name: names for name, names in SURVEY_STAGE_SETTINGS.items() if names}
    config = run_config(settings.model_copy(update={"only_snapshot": settings.snapshot}), stages)
    for stage in ("blueprints", "predictions"):
        config[stage]["conditions"] = settings.conditions
    return config


def resolve_panel(panel: SurveySettings, models: Models) -> tuple[ModelSpec, ...]:
    """Return the models of a panel or a manifest, at its temperature. Raises ConfigError for an unknown model."""
    return models.resolve([spec.name for selector in panel.models for spec in _resolve_at_temperature(panel, selector, models)])


def resolve_panel_budgets(panel: SurveySettings, models: Models) -> dict[str, Budget]:
    """Return budgets by resolved model name. Raises ConfigError for a budget of a model that is not in the panel."""
    specs = {spec.name: spec for spec in resolve_panel(panel, models)}
    budgets: dict[str, Budget] = {}
    for selector, budget in panel.budgets.items():
        for spec in _resolve_at_temperature(panel, selector, models):
            if spec.name not in specs:
                raise ConfigError(f"budgets.{selector}: not one of the models; allowed: {', '.join(specs)}")
            bounds = {**spec.budget.model_dump(exclude_none=True), **budget.model_dump(exclude_none=True)}
            budgets[spec.name] = Budget.model_validate(bounds)
    return budgets


def resolve_panel_models(panel: SurveySettings, models: Models) -> SurveySettings:
    """Return the settings with models and budgets under their resolved names. Raises ConfigError as `resolve_panel_budgets`."""
    names = [spec.name for spec in resolve_panel(panel, models)]
    return panel.model_copy(update={"models": names, "budgets": resolve_panel_budgets(panel, models)})


def _resolve_at_temperature(panel: SurveySettings, selector: str, models: Models) -> Iterator[ModelSpec]:
    """Yield the models of a selector, at the panel's temperature unless the selector or the model sets one or accepts none."""
    says_so = "temperature=" in selector.removeprefix(strip_settings(selector))
    for spec in models.resolve([selector]):
        fixed = spec.is_computed or spec.is_local or spec.temperature is None
        if says_so or fixed or panel.temperature is None:
            yield spec
        else:
            yield from models.resolve([spec.name], {"temperature": panel.temperature})


def select_panel_partitions(panel: SurveySettings, partitions: Sequence[str]) -> list[str]:
    """Return the partitions of a panel among these `partitions`, in their order. Raises ConfigError for a missing round or segment."""
    rounds = [split_partition_key(key)[0] for key in partitions]
    if absent := sorted(set(panel.rounds) - set(rounds)):
        names = ", ".join(sorted(set(rounds), key=make_round_order)) or "none"
        raise ConfigError(f"rounds: {_format_given_names(absent)} not ingested; ingested: {names}")
    round_keys = [key for key, round_id in zip(partitions, rounds, strict=True) if not panel.rounds or round_id in panel.rounds]
    segments = {split_partition_key(key)[1] for key in round_keys}
    if absent := sorted(set(panel.segments) - segments):
        raise ConfigError(
            f"segments: {_format_given_names(absent)} not in the chosen rounds; nearest segments: {list_nearest(absent[0], segments)}"
        )
    return [key for key in round_keys if not panel.segments or split_partition_key(key)[1] in panel.segments]


def _format_given_names(names: Sequence[str]) -> str:
    """Return names as given, except that unprintable characters, which could reverse the text around them, are escaped."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def load_panel(path: Path) -> SurveySettings:
    """Read the survey's keys of a panel file. Raises ConfigError with file, line, field, value and allowed values."""
    return load_panel_settings(path, "", SurveySettings) or SurveySettings()


def check_named(path: Path, models: Models, keys: Sequence[str]) -> SurveySettings:
    """Read a panel file and check all names in it. `keys`: the existing partitions; if empty, rounds and segments are not checked.

    Raises ConfigError as `load_panel`, for an unknown model, round or segment, and for a budget of a model that is not in the panel.
    """
    panel = load_panel(path)
    document = read_document(path, "panel file", list_settings_at(SurveySettings, Door.PANEL))
    for number, selector in enumerate(panel.models):
        # Without a list in the file the default applies.
        with _locate_errors(document, ("models", number) if "models" in document.values else ()):
            models.resolve([selector])
    with _locate_errors(document, ("models",)):
        resolve_panel(panel, models)
    for selector, budget in panel.budgets.items():
        with _locate_errors(document, ("budgets", selector)):
            resolve_panel_budgets(panel.model_copy(update={"budgets": {selector: budget}}), models)
    for field in ("rounds", "segments") if keys else ():
        with _locate_errors(document, (field,)):
            select_panel_partitions(panel.model_copy(update={"segments": []} if field == "rounds" else {}), keys)
    return panel


@contextmanager
def _locate_errors(document: Document, place: Place) -> Iterator[None]:
    """Attribute errors inside the context to this place of the document."""
    try:
        yield
    except ConfigError as error:
        raise document.error(place, str(error).removeprefix(f"{format_path(place)}: ")) from error
