"""Evaluations by questions with expected answers: what a manifest says, and the run of stages that it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dtef_pipeline.api.plans.manifest_base import (
    EvaluationAsked,
    NoneKnown,
    a_run_each,
    chosen_partitions,
    made_partitions,
    manifest_form,
    models_named,
    refuse_absent_names,
    refused,
    require_askable,
    require_few_draws,
    require_label,
)
from dtef_pipeline.api.plans.plan import PlannedEvaluation, Refusals, UnfitManifest
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.qa.arbiter import NOBODY, Arbiter, judge_snapshot
from dtef_pipeline.qa.filter_faults import filter_faults
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings, parts_of_panel
from dtef_pipeline.qa.space import QA_SPACE
from resources.gateway.budget import Accounts
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse

_LACKING_PARTS = NoneKnown("suites", "no suite of questions was added on this server yet", "qa_items")
_SHOWN_BY_PARTS = ("few_shot", "order")
"""Settings that a part can be at odds with."""


class QaManifest(EvaluationAsked):
    """Models answer the questions of parts of suites. How code is isolated is the server's own setting (DTEF_SANDBOX)."""

    family: Literal["qa"]
    models: Annotated[list[str], Field(min_length=1)]
    """Names or collections of the models files, and litellm strings where the server allows them; settings follow an @."""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.settings(QaSettings).names_parts:
            raise ValueError("suites and parts are both empty; allowed: one name or more in either")
        return self


QaEvaluation = manifest_form(QaManifest, "QaEvaluation", QaSettings)


def planned_qa(manifest: QaManifest, settings: Settings) -> PlannedEvaluation:
    """The run of stages, from the prompts on; from the items on where those of a part were never made.

    Raises UnknownName for suites, parts and models that are not there, and UnfitManifest for a judge, models and
    settings that cannot be asked so.
    """
    from assets.qa.stages import arbiter_of_run

    asked = manifest.settings(QaSettings)
    refusals = Refusals()
    with refusals.kept():
        models = models_named(settings, "models", asked.models)
    with refusals.kept(), refused("judge"):
        arbiter = arbiter_of_run(models_named(settings, "judge", _judging(asked.judge)), asked)
    with refusals.kept():
        keys = chosen_partitions(settings, QA_SPACE, _LACKING_PARTS, partial(parts_of_panel, asked))
    refusals.raise_all()
    runs = a_run_each(keys, "parts")
    require_label(settings, "qa_responses", QA_SPACE, keys, asked.snapshot)
    made = made_partitions(settings, "qa_items", QA_SPACE)
    require_few_draws("draws", asked.draws, _numbers_of_items(asked, keys, settings))
    warnings = _require_askable(asked, settings, models, arbiter, [one for one in keys if one in made])
    first = "qa_prompts" if made.issuperset(keys) else "qa_items"
    stages = {name: names for name, names in QA_STAGE_SETTINGS.items() if name in (first, *list(QA_STAGE_SETTINGS)[1:])}
    config = run_config(asked, stages)
    return PlannedEvaluation("qa_pipeline", QA_SPACE.name, keys, config, asked.snapshot, runs, warnings=warnings)


def refuse_qa_names(given: Mapping[str, Any], settings: Settings) -> None:
    """Raises RefusedManifest with all names that are not there, of what a manifest has of models, the judge, suites and parts."""
    named = QaSettings.model_construct(**given)
    selectors = {"models": given.get("models", ()), "judge": _judging(given.get("judge"))}
    choose = partial(parts_of_panel, named) if named.names_parts else None
    refuse_absent_names(settings, selectors, QA_SPACE, _LACKING_PARTS, choose)


def _judging(judge: str | None) -> list[str]:
    """The model that a manifest names as its judge, if it names one."""
    return [judge] if judge and judge != NOBODY else []


def _numbers_of_items(asked: QaSettings, keys: Sequence[str], settings: Settings) -> Iterator[int]:
    """By partition, of those that were made."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    for key in keys:
        items = len(warehouse.read_or_empty("qa_items", columns=["item_id"], **QA_SPACE.levels(key)))
        yield items if asked.limit is None else min(items, asked.limit)


def _require_askable(
    asked: QaSettings, settings: Settings, models: Models, arbiter: Arbiter | None, made: Sequence[str]
) -> list[str]:
    """What is refused before anybody is asked: models, the judge, and ways of asking that a part does not allow. `made`: parts whose items
    are known. Returns the warnings of `require_askable`.

    Raises UnfitManifest, and UnknownName for models of which nothing was imported.
    """
    from assets.qa.askable_parts import refuse_unpriced_judge
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    how = asked.how
    judged = _require_parts(warehouse, made, how, settings)
    with refused("filter"):
        filter_faults(
            made,
            how,
            lambda key, columns: warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)),
            "got",
        )
    specs = models.resolve(asked.models)
    if computed := [spec.name for spec in specs if spec.is_computed]:
        raise UnfitManifest("models", f"{', '.join(computed)}: it is computed from surveys; allowed: a model that is asked")
    in_all = Accounts(Budget(max_cost_usd=asked.max_cost_usd), {})
    warnings = require_askable("models", specs, asked.snapshot, settings, in_all)
    if arbiter is not None and judged:
        with refused("judge"):
            refuse_unpriced_judge(arbiter, asked.allow_unpriced, "allow_unpriced:")
        try:
            warnings += require_askable("judge", [arbiter.model], judge_snapshot(None), settings)
        except UnfitManifest as error:
            allowed = "" if "; allowed: " in error.message else "; allowed: another judge"
            raise UnfitManifest("judge", f"{error.message}{allowed}, or none: nobody judges") from None
    return warnings


def _require_parts(warehouse: Warehouse, made: Sequence[str], how: AskedHow, settings: Settings) -> bool:
    """Whether some of the items are for a judge. Raises UnfitManifest where a part cannot be asked so, with the setting that is in its way."""
    from assets.qa.askable_parts import looked_at_parts, require_server

    found = looked_at_parts(warehouse, made, how)
    for key, error in found.refused.items():
        usual = AskedHow()
        for field in _SHOWN_BY_PARTS:
            without = looked_at_parts(warehouse, [key], replace(how, **{field: getattr(usual, field)}))
            if str(without.refused.get(key)) != str(error):
                raise UnfitManifest(field, str(error))
        raise UnfitManifest("parts", str(error))
    if found.about_documents:
        with refused("retriever"):
            require_server(how.retriever, settings)
    return found.judged
