"""Evaluations on questions with expected answers: models answer the questions of parts of suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dtef_pipeline.api.plans.family_plans import FamilyPlans, PlanSource, ResolvedNames
from dtef_pipeline.api.plans.manifest_base import (
    EvaluationRequest,
    build_manifest_model,
    list_made_partitions,
    load_named_models,
    rejections,
    require_askable,
)
from dtef_pipeline.api.plans.plan import Refusals, UnfitManifest
from dtef_pipeline.qa.judging.arbiter import JUDGING_OFF, Arbiter, judge_snapshot
from dtef_pipeline.qa.prompt_rows import AskSettings, filter_faults
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings, select_panel_parts
from dtef_pipeline.qa.tables import QA_SPACE
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse

_PART_SETTINGS = ("few_shot", "order")
"""Settings that a part can be at odds with."""


class QaManifest(EvaluationRequest):
    """Models answer the questions of parts of suites. How code is isolated is the server's own setting (DTEF_SANDBOX)."""

    family: Literal["qa"]
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and LiteLLM strings if the server allows them; settings follow an @."""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.settings(QaSettings).names_parts:
            raise ValueError("suites and parts are both empty; allowed: at least one name in either")
        return self


QaEvaluation = build_manifest_model(QaManifest, "QaEvaluation", QaSettings)


class QaPlans(FamilyPlans):
    """The run begins with the items if those of a part were never made."""

    field = "suites"
    nothing_added = "no suite of questions has been added on this server yet"
    form = QaEvaluation

    def names_partitions(self, values: Mapping[str, Any]) -> bool:
        return bool(values.get("suites") or values.get("parts"))

    def choose(self, values: Mapping[str, Any], settings: QaSettings, keys: Sequence[str]) -> list[str]:
        return select_panel_parts(settings, keys)

    def require_judges(self, refusals: Refusals, settings: QaSettings, server: Settings) -> None:
        with refusals.collect(), rejections("judge"):
            self._resolve_arbiter(settings, server)

    def _resolve_arbiter(self, settings: QaSettings, server: Settings) -> Arbiter | None:
        """Return the judge; None: judging is off."""
        from assets.qa.stages import resolve_run_arbiter

        models = load_named_models(
            server, "judge", [settings.judge] if settings.judge and settings.judge != JUDGING_OFF else []
        )
        return resolve_run_arbiter(models, settings)

    def require_askable(self, settings: QaSettings, named: ResolvedNames, server: Settings) -> list[str]:
        """Refuse invalid models and judges, and settings that do not fit a part whose items are known."""
        warehouse, setup, partitions = (
            self.warehouse(server),
            settings.ask_settings,
            list_made_partitions(server, "qa_items", QA_SPACE),
        )
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


QA_PLANS = QaPlans(PlanSource("qa", QA_SPACE, QaSettings, QA_STAGE_SETTINGS, "qa_items", "qa_responses"))
