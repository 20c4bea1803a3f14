"""Evaluations with rubrics: models answer the prompts of blueprints, and judges decide which criteria are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dtef_pipeline.api.plans.family_plans import FamilyPlans, PlanSource, ResolvedNames
from dtef_pipeline.api.plans.manifest_base import EvaluationRequest, build_manifest_model, load_named_models, rejections
from dtef_pipeline.api.plans.plan import Refusals
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.judging.judges import parse_judges
from dtef_pipeline.rubric.conversations import Candidates
from dtef_pipeline.rubric.judge_requests import choose_judges
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings, select_panel_blueprints
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse


class RubricManifest(EvaluationRequest):
    """Models answer the prompts of blueprints, and judges decide which criteria are met."""

    family: Literal["rubric"]
    blueprints: Annotated[list[str], Field(min_length=1)]
    """Ids, or patterns with * and ?."""
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and LiteLLM strings if the server allows them; settings follow an @."""


RubricEvaluation = build_manifest_model(RubricManifest, "RubricEvaluation", RubricSettings)


class RubricPlans(FamilyPlans):
    """The run begins with the blueprints if one was never made, or if criteria must be extracted."""

    field = "blueprints"
    nothing_added = "no blueprint has been added on this server yet"
    form = RubricEvaluation

    def choose(self, values: Mapping[str, Any], settings: RubricSettings, keys: Sequence[str]) -> list[str]:
        return select_panel_blueprints(settings, keys)

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

    def stages(self, settings: RubricSettings, all_made: bool) -> Mapping[str, Sequence[str]]:
        return super().stages(settings, all_made and not settings.extract_points)

    def require_askable(self, settings: RubricSettings, named: ResolvedNames, server: Settings) -> list[str]:
        with rejections("models"):
            candidates = Candidates(named.models, settings.models)
        # These bring pandas, which the API starts without.
        from dtef_pipeline.rubric.summaries.extractions import choose_extracting_model
        from dtef_pipeline.rubric.summaries.summary import choose_analysts

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
        from dtef_pipeline.rubric.summaries.extractions import is_to_be_judged

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
    PlanSource("rubric", RUBRIC_SPACE, RubricSettings, RUBRIC_STAGE_SETTINGS, "rubric_blueprints", "rubric_responses")
)
