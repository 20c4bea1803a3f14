"""Manifests of evaluations, of any family: which form each has, and what each comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from dtef_pipeline.api.plans.family_plans import FamilyPlans
from dtef_pipeline.api.plans.games_plan import GAMES_PLANS
from dtef_pipeline.api.plans.plan import BodyFault, PlannedEvaluation, RefusedManifest
from dtef_pipeline.api.plans.qa_plan import QA_PLANS
from dtef_pipeline.api.plans.rubric_plan import RUBRIC_PLANS
from dtef_pipeline.api.plans.survey_plan import SURVEY_PLANS
from dtef_pipeline.api.problems import body_faults, faulty
from dtef_pipeline.documents import Part, echoed, reasons
from resources.settings import Settings

FAMILY_OF_UNNAMED = "games"
"""Of a manifest that names none."""


class Plans(Protocol):
    """What the manifests of a family are planned with."""

    @property
    def form(self) -> type[Part]: ...

    def plan(self, manifest: Any, server: Settings) -> PlannedEvaluation:
        """Raises UnknownName, NotApproved or UnfitManifest, and ConfigError where the installation has a fault."""

    def refuse_names(self, given: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest for names that cannot be in those fields of a manifest that have their form."""


_OWN_PLANS: Mapping[str, Plans] = {"games": GAMES_PLANS, "qa": QA_PLANS, "rubric": RUBRIC_PLANS, "survey": SURVEY_PLANS}
"""Of families that know more of their manifests than `FamilyPlans`."""


def all_plans() -> dict[str, Plans]:
    """By family."""
    # Only now: what families are made of takes a moment to load.
    from dtef_pipeline.families import FAMILIES

    others = {one.name: FamilyPlans.of_family(one) for one in FAMILIES if one.name not in _OWN_PLANS}
    return {**_OWN_PLANS, **others}


class SentManifest(NamedTuple):
    """A manifest that has the form of its family."""

    family: str
    manifest: Part

    @property
    def values(self) -> dict[str, Any]:
        """With its defaults spelled out: what is left out, and what is given as it is by default, have the same values."""
        return self.manifest.model_dump(mode="json")

    def planned(self, settings: Settings) -> PlannedEvaluation:
        """Raises UnknownName, NotApproved or UnfitManifest, and ConfigError where the installation has a fault."""
        return all_plans()[self.family].plan(self.manifest, settings)


def read_manifest(values: Mapping[str, Any], settings: Settings) -> SentManifest:
    """Raises Problem (422) with the path of each fault, what arrived there and what is allowed; names that cannot be are told with them."""
    family, plans = values.get("family", FAMILY_OF_UNNAMED), all_plans()
    if not isinstance(family, str) or family not in plans:
        raise faulty([BodyFault("family", f"got {echoed(family)}; allowed: {', '.join(plans)}")])
    form = plans[family].form
    try:
        return SentManifest(family, form.model_validate(values))
    except ValidationError as error:
        errors = body_faults(reasons(error, form))
    at_fault = {one.path.partition(".")[0] for one in errors}
    given = {name: one for name, one in values.items() if name not in at_fault and one is not None}
    try:
        plans[family].refuse_names(given, settings)
    except RefusedManifest as refused:
        errors += refused.faults
    raise faulty(errors)


def use_manifest_schema(schema: dict[str, Any]) -> None:
    """The JSON schema of a manifest: that of any family."""
    forms = [schema_in_one(one.form.model_json_schema()) for one in all_plans().values()]
    schema.clear()
    schema |= {"type": "object", "oneOf": forms}


def schema_in_one(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references: its definitions stand where they are named."""
    parts = schema.pop("$defs", {})

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            named = parts.get(str(value.get("$ref")).rpartition("/")[2])
            return filled(named) if named else {key: filled(one) for key, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list) else value

    found: dict[str, Any] = filled(schema)
    return found
