"""Manifests of evaluations of any family: their form, and the plans made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dtef_pipeline.api.plans.family_plans import FamilyPlans, ResolvedNames
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
