"""Manifests of evaluations of any family: their form, and the plans made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from dtef_pipeline.api.plans.family_plans import FamilyPlans
from dtef_pipeline.api.plans.games_plan import GAMES_PLANS, GamesPlans
from dtef_pipeline.api.plans.plan import BodyFault, PlannedEvaluation, RefusedManifest
from dtef_pipeline.api.plans.qa_plan import QA_PLANS
from dtef_pipeline.api.plans.rubric_plan import RUBRIC_PLANS
from dtef_pipeline.api.plans.survey_plan import SURVEY_PLANS
from dtef_pipeline.api.problems import convert_faults, make_fault_problem
from dtef_pipeline.documents import format_value, reasons
from resources.settings import Settings

FAMILY_OF_UNNAMED = "games"
"""Family of a manifest that names none."""


Plans = FamilyPlans | GamesPlans

_OWN_PLANS: Mapping[str, Plans] = {"games": GAMES_PLANS, "qa": QA_PLANS, "rubric": RUBRIC_PLANS, "survey": SURVEY_PLANS}
"""Planning classes of families that need more than `FamilyPlans`."""


def load_all_plans() -> dict[str, Plans]:
    """By family."""
    # Imported here because the families load slowly.
    from dtef_pipeline.families import FAMILIES

    plans = {family.name: FamilyPlans.build_for_family(family) for family in FAMILIES if family.name not in _OWN_PLANS}
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
