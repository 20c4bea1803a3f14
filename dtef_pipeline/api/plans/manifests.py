"""Manifests of evaluations, of any family: which form each has, and what each comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from dtef_pipeline.api.plans.games_plan import GamesManifest, planned_games, refuse_games_names
from dtef_pipeline.api.plans.plan import PlannedEvaluation, RefusedManifest
from dtef_pipeline.api.plans.qa_plan import QaEvaluation, planned_qa, refuse_qa_names
from dtef_pipeline.api.plans.rubric_plan import RubricEvaluation, planned_rubric, refuse_rubric_names
from dtef_pipeline.api.plans.survey_plan import SurveyEvaluation, planned_survey, refuse_survey_names
from dtef_pipeline.api.problems import as_errors, faulty
from dtef_pipeline.documents import Part, echoed, reasons
from resources.settings import Settings

FAMILY_OF_UNNAMED = "games"
"""Of a manifest that names none."""


class _Manifests(NamedTuple):
    form: type[Part]
    planned: Callable[[Any, Settings], PlannedEvaluation]
    refuse_names: Callable[[Mapping[str, Any], Settings], None]
    """Raises RefusedManifest for names that cannot be in those fields of a manifest that have their form."""


_MANIFESTS_OF: Mapping[str, _Manifests] = {
    "games": _Manifests(GamesManifest, planned_games, refuse_games_names),
    "qa": _Manifests(QaEvaluation, planned_qa, refuse_qa_names),
    "rubric": _Manifests(RubricEvaluation, planned_rubric, refuse_rubric_names),
    "survey": _Manifests(SurveyEvaluation, planned_survey, refuse_survey_names),
}


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
        return _MANIFESTS_OF[self.family].planned(self.manifest, settings)


def read_manifest(values: Mapping[str, Any], settings: Settings) -> SentManifest:
    """Raises Problem (422) with the path of each fault, what arrived there and what is allowed; names that cannot be are told with them."""
    family = values.get("family", FAMILY_OF_UNNAMED)
    if not isinstance(family, str) or family not in _MANIFESTS_OF:
        raise faulty([{"path": "family", "message": f"got {echoed(family)}; allowed: {', '.join(_MANIFESTS_OF)}"}])
    form = _MANIFESTS_OF[family].form
    try:
        return SentManifest(family, form.model_validate(values))
    except ValidationError as error:
        errors = as_errors(reasons(error, form))
    at_fault = {one["path"].partition(".")[0] for one in errors}
    try:
        _MANIFESTS_OF[family].refuse_names(
            {name: one for name, one in values.items() if name not in at_fault and one is not None}, settings
        )
    except RefusedManifest as refused:
        errors += [fault._asdict() for fault in refused.faults]
    raise faulty(errors)


def manifest_schema() -> dict[str, Any]:
    """The JSON schema of a manifest: that of any family."""
    return {"type": "object", "oneOf": [schema_in_one(one.form.model_json_schema()) for one in _MANIFESTS_OF.values()]}


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
