"""Manifests of evaluations of any family: their form, and the plans made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dtef_pipeline.api.plans.games_plan import GAMES_PLANS, GamesPlans
from dtef_pipeline.api.plans.plan import (
    BodyFault,
    EvaluationRequest,
    PlannedEvaluation,
    Refusals,
    RefusedManifest,
    UnfitManifest,
    build_manifest_model,
    list_made_partitions,
    load_named_models,
    rejections,
    require_askable,
)
from dtef_pipeline.api.problems import convert_faults, make_fault_problem
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.documents import format_value, reasons
from dtef_pipeline.family.run_settings import make_validator
from dtef_pipeline.judging.judges import parse_judges
from dtef_pipeline.qa.judging.arbiter import JUDGING_OFF, Arbiter, judge_snapshot
from dtef_pipeline.qa.prompt_rows import AskSettings, filter_faults
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings, select_panel_parts
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings, select_panel_blueprints
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import (
    SURVEY_STAGE_SETTINGS,
    SurveySettings,
    build_survey_run_config,
    resolve_panel_models,
    select_panel_partitions,
)
from resources.gateway.budget import Accounts
from resources.settings import Settings

if TYPE_CHECKING:
    from dtef_pipeline.rubric.episodes import Candidates
    from resources.warehouse import Warehouse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import create_model

from dtef_pipeline.api.plans.plan import (
    UnknownName,
    build_runs,
    list_known_partitions,
)
from dtef_pipeline.asking.models import Models
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import RunSettings, run_config
from dtef_pipeline.keys import Space
from dtef_pipeline.text.name_matching import filter_by_patterns
from dtef_pipeline.text.number_words import list_first_names

if TYPE_CHECKING:
    from resources.warehouse import Warehouse


class ResolvedNames(NamedTuple):
    """The resolved names of a manifest."""

    models: Models
    """All known models."""
    keys: list[str]
    """Named partitions."""


@dataclass(frozen=True)
class FamilyPlans:
    """Plans of a family. Families that need more have a class of their own."""

    name: str
    space: Space
    settings_type: type[RunSettings]
    stages: Mapping[str, Sequence[str]]
    """Settings by stage in the order of the pipeline; the first stage makes the items of a partition."""
    items: str
    """Table with one row per item, made by the first stages."""
    answers: str
    """First table with snapshots."""
    fields: tuple[str, ...] = ("partitions",)
    """Fields of a manifest that name partitions."""
    select: Callable[[Any, Sequence[str]], list[str]] | None = None
    """Selects the partitions that settings name among the known ones; None: patterns of the first field."""
    nothing_added: str = "nothing of this family has been added on this server yet"
    own_form: type[EvaluationRequest] | None = None

    @cached_property
    def form(self) -> type[Part]:
        """Return the form of a manifest: partitions, and the settings of the family's runs that the API accepts."""
        if self.own_form is not None:
            return self.own_form
        members: dict[str, Any] = {
            "family": (Literal[self.name], ...),
            self.fields[0]: (Annotated[list[str], Field(min_length=1, description="Keys, or patterns with * and ?.")], ...),
        }
        base = create_model(f"{self.name.capitalize()}Manifest", __base__=EvaluationRequest, **members)
        return build_manifest_model(base, f"{self.name.capitalize()}Evaluation", self.settings_type)

    def plan(self, manifest: EvaluationRequest, server: Settings) -> PlannedEvaluation:
        """Plan the stages from the first one that has not made all partitions.

        Raises UnknownName for unknown partitions and models, and UnfitManifest for invalid models and settings.
        """
        # It brings Dagster, which the API starts without.
        from assets.stage.partitions import require_snapshot

        values, settings = manifest.model_dump(), self.build_settings(manifest)
        named = self.resolve_names(values, settings, server)
        runs = build_runs(named.keys, self.fields[0])
        with rejections("snapshot"):
            require_snapshot(self.warehouse(server), self.answers, self.space, named.keys, settings.snapshot)
        warnings = self.require_askable(settings, named, server)
        all_made = list_made_partitions(server, self.items, self.space).issuperset(named.keys)
        config = self.config(settings, named, all_made)
        return PlannedEvaluation(
            f"{self.name}_pipeline", self.space.name, named.keys, config, settings.snapshot, runs, warnings=warnings
        )

    def refuse_names(self, values: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all unknown names in the well-formed fields of a manifest."""
        self.resolve_names(values, self.settings_type.model_construct(**values), server)

    def resolve_names(self, values: Mapping[str, Any], settings: Any, server: Settings) -> ResolvedNames:
        """Raises RefusedManifest with all invalid names of models and partitions. Without names, no partition is selected."""
        refusals, keys = Refusals(), list[str]()
        with refusals.collect():
            models = load_named_models(server, "models", values.get("models") or ())
        self.require_judges(refusals, settings, server)
        if any(values.get(field) for field in self.fields):
            with refusals.collect():
                keys = self._choose_partitions(values, settings, server)
        refusals.raise_all()
        return ResolvedNames(models, keys)

    def _choose_partitions(self, values: Mapping[str, Any], settings: Any, server: Settings) -> list[str]:
        """Return the partitions that a manifest names. Raises UnknownName, also if Dagster knows none."""
        if not (keys := list_known_partitions(server, self.space)):
            partitions = list_made_partitions(server, self.items, self.space)
            other_home = (
                f"the warehouse of this server has {list_first_names(sorted(partitions), 3)}, but Dagster's home does not: they were "
                "added with another DAGSTER_HOME, or it was reset. The server's operator must add them again"
            )
            raise UnknownName(self.fields[0], other_home if partitions else self.nothing_added)
        try:
            if self.select is None:
                return filter_by_patterns(keys, values[self.fields[0]], f"{self.fields[0]}:")
            return self.select(settings, keys)
        except ConfigError as error:
            field, _, message = str(error).partition(": ")
            raise UnknownName(field.rpartition(".")[2], message) from None

    def require_judges(self, refusals: Refusals, settings: Any, server: Settings) -> None:
        """Check the names of judges and other auxiliary models; errors are collected."""

    def build_settings(self, manifest: EvaluationRequest) -> Any:
        """Return the settings of a manifest's run."""
        return manifest.settings(self.settings_type)

    def config(self, settings: Any, named: ResolvedNames, all_made: bool) -> Mapping[str, Mapping[str, Any]]:
        """Return the configuration of the stages that run. `all_made`: whether the first stage has already made all partitions."""
        return run_config(settings, self.choose_stages(settings, all_made))

    def choose_stages(self, settings: Any, all_made: bool) -> Mapping[str, Sequence[str]]:
        """Return the stages that run, with their settings."""
        first, *_ = self.stages
        return {name: names for name, names in self.stages.items() if not (all_made and name == first)}

    def require_askable(self, settings: Any, named: ResolvedNames, server: Settings) -> list[str]:
        """Refuse models that cannot be used; returns the warnings of `manifest_base.require_askable`."""
        with rejections("models"):
            specs = named.models.resolve(list(getattr(settings, "models", ())))
        return self.require_within_budget({"models": specs}, settings, server)

    def require_within_budget(self, specs: Mapping[str, Sequence[ModelSpec]], settings: Any, server: Settings) -> list[str]:
        """Return the warnings of `require_askable` for models by the field that names them; all share the budget of the run."""
        budget = Accounts(Budget(max_cost_usd=settings.max_cost_usd), {})
        return [
            line for field, group in specs.items() for line in require_askable(field, group, settings.snapshot, server, budget)
        ]

    @staticmethod
    def warehouse(server: Settings) -> Warehouse:
        from resources.warehouse import Warehouse

        return Warehouse(server.warehouse)


_PART_SETTINGS = ("few_shot", "order")
"""Settings that a part can be at odds with."""


class ModelsRequest(EvaluationRequest):
    """A manifest that names the models to ask."""

    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and LiteLLM strings if the server allows them; settings follow an @."""


def _require_prompts(conditions: list[str]) -> None:
    """Raise ConfigError for custom system prompts, which only `dtef run` accepts."""
    for condition in conditions:
        BlueprintOptions.parse_condition(condition)


class SurveyManifest(ModelsRequest):
    """Models predict how segments of people answer the questions of survey rounds."""

    family: Literal["survey"]
    rounds: Annotated[list[str], Field(min_length=1)]
    context_levels: Annotated[list[str], Field(min_length=1), BeforeValidator(ContextLevel.convert_numbers)] = ["0"]
    """Numbers of context questions, or `all`."""
    conditions: Annotated[list[str], Field(min_length=1), make_validator(_require_prompts)] = [BlueprintOptions().condition]
    """Conditions, such as shift/narrative+cot."""


SurveyEvaluation = build_manifest_model(SurveyManifest, "SurveyEvaluation", SurveySettings)


class SurveyPlans(FamilyPlans):
    """The run begins with the prompts, which are made if missing."""

    def build_settings(self, manifest: EvaluationRequest) -> SurveySettings:
        assert isinstance(manifest, SurveyManifest)
        return manifest.settings(SurveySettings).model_copy(update={"context_levels": manifest.context_levels})

    def require_askable(self, settings: SurveySettings, named: ResolvedNames, server: Settings) -> list[str]:
        """Check the models' budgets, too."""
        with rejections("budgets"):
            panel = resolve_panel_models(settings, named.models)
        specs = named.models.resolve(panel.models)
        budgets = {spec.name: spec.budget for spec in specs} | panel.budgets
        run_budget = Budget(max_cost_usd=settings.max_cost_usd)
        return require_askable("models", specs, settings.snapshot, server, Accounts(run_budget, budgets))

    def config(self, settings: SurveySettings, named: ResolvedNames, all_made: bool) -> Mapping[str, Mapping[str, Any]]:
        return build_survey_run_config(resolve_panel_models(settings, named.models))


SURVEY_PLANS = SurveyPlans(
    "survey",
    SPACE,
    SurveySettings,
    SURVEY_STAGE_SETTINGS,
    items="survey_responses",
    answers="predictions",
    fields=("rounds", "segments"),
    select=select_panel_partitions,
    nothing_added="no survey round has been ingested on this server yet",
    own_form=SurveyEvaluation,
)


class RubricManifest(ModelsRequest):
    """Models answer the prompts of blueprints, and judges decide which criteria are met."""

    family: Literal["rubric"]
    blueprints: Annotated[list[str], Field(min_length=1)]
    """Ids, or patterns with * and ?."""


RubricEvaluation = build_manifest_model(RubricManifest, "RubricEvaluation", RubricSettings)


class RubricPlans(FamilyPlans):
    """The run begins with the blueprints if one was never made, or if criteria must be extracted."""

    def require_judges(self, refusals: Refusals, settings: RubricSettings, server: Settings) -> None:
        """Refuse judges that are not written APPROACH=MODEL, or whose model is unknown or invalid, and analysts likewise."""
        judges = Refusals()
        for judge in judges.take_until_full(settings.judges):
            with judges.collect():
                model = judge.partition("=")[2]
                models = load_named_models(server, "judges", [model] if model else [])
                with rejections("judges"):
                    parse_judges([judge], models)
        with refusals.collect():
            judges.raise_all()
        with refusals.collect():
            load_named_models(server, "analysts", settings.analysts)

    def choose_stages(self, settings: RubricSettings, all_made: bool) -> Mapping[str, Sequence[str]]:
        return super().choose_stages(settings, all_made and not settings.extract_points)

    def require_askable(self, settings: RubricSettings, named: ResolvedNames, server: Settings) -> list[str]:
        # These bring pandas, which the API starts without.
        from dtef_pipeline.rubric.analysts import choose_analysts, choose_extracting_model
        from dtef_pipeline.rubric.episodes import Candidates

        with rejections("models"):
            candidates = Candidates(named.models, settings.models)
        with rejections("analysts"):
            analysts = choose_analysts(settings.analysts, named.models)
            if settings.extract_points:
                analysts = (choose_extracting_model(settings.analysts, named.models), *analysts)
        specs, judges = self._specs(settings, named, candidates, self.warehouse(server))
        by_field = {"models": specs, "judges": judges, "analysts": analysts if settings.analysts else ()}
        return self.require_within_budget(by_field, settings, server)

    def _specs(
        self, settings: RubricSettings, named: ResolvedNames, candidates: Candidates, warehouse: Warehouse
    ) -> tuple[list[ModelSpec], list[ModelSpec]]:
        """Return the models that answer the prompts of these blueprints, at their temperatures, and the judges, as far as known.

        Raises UnfitManifest if no judge is named.
        """
        from dtef_pipeline.rubric.analysts import is_to_be_judged
        from dtef_pipeline.rubric.episodes import choose_judges

        temperatures, judges = set[float](), dict[str, ModelSpec]()
        for key in named.keys:
            prompts = warehouse.read_or_empty("rubric_prompts", columns=["prompt", "ideal", "temperatures"], blueprint=key)
            temperatures.update(value for group in prompts["temperatures"].to_pylist() for value in group)
            criteria = warehouse.read_or_empty("rubric_criteria", columns=["prompt", "kind"], blueprint=key)
            if is_to_be_judged(prompts, criteria, extracting=settings.extract_points):
                heads = warehouse.read_or_empty("rubric_blueprints", columns=["judges"], blueprint=key)["judges"].to_pylist()
                with rejections("judges"):
                    choices = choose_judges(settings.judges, heads[0] if heads else [], named.models, settings.scale)
                judges |= {judge.model.variant: judge.model for judge in choices}
        return candidates.resolve_at(sorted(temperatures)), list(judges.values())


RUBRIC_PLANS = RubricPlans(
    "rubric",
    RUBRIC_SPACE,
    RubricSettings,
    RUBRIC_STAGE_SETTINGS,
    items="rubric_blueprints",
    answers="rubric_responses",
    fields=("blueprints",),
    select=select_panel_blueprints,
    nothing_added="no blueprint has been added on this server yet",
    own_form=RubricEvaluation,
)


class QaManifest(ModelsRequest):
    """Models answer the questions of parts of suites. How code is isolated is the server's own setting (DTEF_SANDBOX)."""

    family: Literal["qa"]

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.settings(QaSettings).names_parts:
            raise ValueError("suites and parts are both empty; allowed: at least one name in either")
        return self


QaEvaluation = build_manifest_model(QaManifest, "QaEvaluation", QaSettings)


class QaPlans(FamilyPlans):
    """The run begins with the items if those of a part were never made."""

    def require_judges(self, refusals: Refusals, settings: QaSettings, server: Settings) -> None:
        with refusals.collect(), rejections("judge"):
            self._resolve_arbiter(settings, server)

    def _resolve_arbiter(self, settings: QaSettings, server: Settings) -> Arbiter | None:
        """Return the judge; None: judging is off."""
        from assets.qa.stages import resolve_run_arbiter

        judge = settings.judge if settings.judge != JUDGING_OFF else None
        models = load_named_models(server, "judge", [judge] if judge else [])
        return resolve_run_arbiter(models, settings)

    def require_askable(self, settings: QaSettings, named: ResolvedNames, server: Settings) -> list[str]:
        """Refuse invalid models and judges, and settings that do not fit a part whose items are known."""
        warehouse, setup = self.warehouse(server), settings.ask_settings
        partitions = list_made_partitions(server, "qa_items", QA_SPACE)
        keys = [key for key in named.keys if key in partitions]
        is_judged = _require_parts(warehouse, keys, setup, server)
        with rejections("filter"):
            filter_faults(
                keys,
                setup,
                lambda key, columns: warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
                "got",
            )
        specs = named.models.resolve(settings.models)
        if names := [spec.name for spec in specs if spec.is_computed]:
            raise UnfitManifest(
                "models", f"{', '.join(names)}: computed from survey data, so it takes no requests; allowed: a language model"
            )
        warnings = self.require_within_budget({"models": specs}, settings, server)
        return [*warnings, *(self._require_judge(settings, server) if is_judged else ())]

    def _require_judge(self, settings: QaSettings, server: Settings) -> list[str]:
        from assets.qa.part_checks import refuse_unpriced_judge

        if (arbiter := self._resolve_arbiter(settings, server)) is None:
            return []
        with rejections("judge"):
            refuse_unpriced_judge(arbiter, settings.allow_unpriced, "allow_unpriced:")
        try:
            return require_askable("judge", [arbiter.model], judge_snapshot(None), server)
        except UnfitManifest as error:
            hint = "" if "; allowed: " in error.message else "; allowed: another judge"
            raise UnfitManifest("judge", f"{error.message}{hint}, or none (no judging)") from None


def _require_parts(warehouse: Warehouse, keys: Sequence[str], setup: AskSettings, server: Settings) -> bool:
    """Return whether some items need a judge. Raises UnfitManifest if a setting does not fit a part, naming the setting."""
    from assets.qa.part_checks import check_parts, require_server

    checks = check_parts(warehouse, keys, setup)
    for key, error in checks.refusals.items():
        usual = AskSettings()
        for field in _PART_SETTINGS:
            usual_checks = check_parts(warehouse, [key], replace(setup, **{field: getattr(usual, field)}))
            if str(usual_checks.refusals.get(key)) != str(error):
                raise UnfitManifest(field, str(error))
        raise UnfitManifest("parts", str(error))
    if checks.has_documents:
        with rejections("retriever"):
            require_server(setup.retriever, server)
    return checks.needs_judge


QA_PLANS = QaPlans(
    "qa",
    QA_SPACE,
    QaSettings,
    QA_STAGE_SETTINGS,
    items="qa_items",
    answers="qa_responses",
    fields=("suites", "parts"),
    select=select_panel_parts,
    nothing_added="no suite of questions has been added on this server yet",
    own_form=QaEvaluation,
)


FAMILY_OF_UNNAMED = "games"
"""Family of a manifest that names none."""


Plans = FamilyPlans | GamesPlans

_OWN_PLANS: Mapping[str, Plans] = {"games": GAMES_PLANS, "qa": QA_PLANS, "rubric": RUBRIC_PLANS, "survey": SURVEY_PLANS}
"""Planning classes of families that need more than `FamilyPlans`."""


def load_all_plans() -> dict[str, Plans]:
    """By family."""
    # Imported here because the families load slowly.
    from dtef_pipeline.families import FAMILIES

    plans = {
        family.name: FamilyPlans(
            family.name, family.space, family.settings, family.settings_by_stage, family.first_table, family.responses
        )
        for family in FAMILIES
        if family.name not in _OWN_PLANS
    }
    return {**_OWN_PLANS, **plans}


class ManifestRequest(NamedTuple):
    """A manifest in the form of its family."""

    family: str
    manifest: Any

    @property
    def values(self) -> dict[str, Any]:
        """The manifest with its defaults filled in, so that an omitted default and an explicit one are equal."""
        values: dict[str, Any] = self.manifest.model_dump(mode="json")
        return values

    def plan(self, settings: Settings) -> PlannedEvaluation:
        """Raises UnknownName, NotApproved or UnfitManifest, and ConfigError if the installation is misconfigured."""
        return load_all_plans()[self.family].plan(self.manifest, settings)


def read_manifest(values: Mapping[str, Any], settings: Settings) -> ManifestRequest:
    """Raises Problem (422) with the path of each fault, the value received and the values allowed; refused names are included."""
    family, plans = values.get("family", FAMILY_OF_UNNAMED), load_all_plans()
    if not isinstance(family, str) or family not in plans:
        raise make_fault_problem([BodyFault("family", f"got {format_value(family)}; allowed: {', '.join(plans)}")])
    form = plans[family].form
    try:
        return ManifestRequest(family, form.model_validate(values))
    except ValidationError as error:
        errors = convert_faults(reasons(error, form))
    faulty_names = {fault.path.partition(".")[0] for fault in errors}
    fields = {name: value for name, value in values.items() if name not in faulty_names and value is not None}
    try:
        plans[family].refuse_names(fields, settings)
    except RefusedManifest as refusal:
        errors += refusal.faults
    raise make_fault_problem(errors)


def use_manifest_schema(schema: dict[str, Any]) -> None:
    """Return the JSON schema of a manifest of any family."""
    forms = [resolve_schema_refs(plans.form.model_json_schema()) for plans in load_all_plans().values()]
    schema.clear()
    schema |= {"type": "object", "oneOf": forms}


def resolve_schema_refs(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its references replaced by their definitions."""
    parts = schema.pop("$defs", {})

    def fill_references(value: Any) -> Any:
        if isinstance(value, dict):
            named = parts.get(str(value.get("$ref")).rpartition("/")[2])
            return fill_references(named) if named else {key: fill_references(entry) for key, entry in value.items()}
        return [fill_references(entry) for entry in value] if isinstance(value, list) else value

    result: dict[str, Any] = fill_references(schema)
    return result
