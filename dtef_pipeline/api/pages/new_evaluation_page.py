"""Starting an evaluation from a page by the form of its family, with the checks of the API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple
from uuid import uuid4

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.forms import (
    NOT_REFUSED,
    Choice,
    FieldKind,
    FormField,
    Refusal,
    SentForm,
    TypedForm,
    build_refusal,
    parse_number,
    read_field,
)
from dtef_pipeline.api.pages.page_routes import build_page_router, page, redirect_to_page
from dtef_pipeline.api.plans.manifests import FAMILY_OF_UNNAMED, FamilyPlans, Plans, load_all_plans, resolve_schema_refs
from dtef_pipeline.api.plans.plan import list_known_partitions
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.queue_routes import post_evaluation
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from dtef_pipeline.errors import DtefError
from resources.model_catalog import load_known_models
from resources.settings import Settings

router = build_page_router()


@router.get("/new")
def new_page(request: Request, services: ServicesDep, holder: OperatorToken, family: str = FAMILY_OF_UNNAMED) -> Response:
    """The forms of a family."""
    return _render_new_page(request, services, family, {}, NOT_REFUSED)


@router.post("/new")
def start_by_form(request: Request, services: ServicesDep, holder: OperatorToken, form: SentForm) -> Response:
    """Submit the form of a family."""
    family = read_field(form, "family") or FAMILY_OF_UNNAMED
    plans = _find_plans(family)
    try:
        answer = post_evaluation(services, holder, read_manifest_form(family, plans, form), read_field(form, "once") or None)
    except (Problem, DtefError) as error:
        refusal = build_refusal(request, error, tuple(plans.form.model_fields))
        return _render_new_page(request, services, family, form, refusal)
    return redirect_to_page(f"/queue/{json.loads(bytes(answer.body))['queue_id']}")


def _find_plans(family: str) -> Any:
    """Find the plans of a family. Raises Problem 404 for an unknown family."""
    plans = load_all_plans()
    if family not in plans:
        raise Problem(404, f"unknown family {family[:80]!r}; allowed: {', '.join(plans)}")
    return plans[family]


def _render_new_page(request: Request, services: Services, family: str, form: TypedForm, refusal: Refusal) -> Response:
    """Render the form of a family; a refused one keeps the typed values."""
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILY_BY_NAME

    fields = list_form_fields(family, _find_plans(family), services.settings, form)
    values: dict[str, Any] = {
        "family": family,
        "families": list(FAMILY_BY_NAME),
        "fields": fields,
        "refusal": refusal,
        "once": uuid4().hex,
    }
    return page(request, "new", "New evaluation", status=refusal.status, **values)


_BUDGET = {"max_cost_usd": "Budget in US dollars", "max_calls": "Budget in calls"}
_LABEL_OF_FIELD = {
    "persona_ids": "Personas",
    "scenario_ids": "Scenarios",
    "k": "Chunks of transcripts",
    "timeout_s": "Timeout in seconds",
    "sample_segments": "Segments asked each question",
    "few_shot_as": "Few-shot items as",
}
_MAIN = frozenset(
    ("models", "snapshot", "draws", "seeds", "opponents", "segments", "context_levels", "conditions", "parts", "limit", "judge", "judges")
)  # fmt: skip
"""Settings shown with the required ones; the others, which most evaluations leave at their defaults, are folded."""
_ONLY_BOXES = frozenset(("persona_ids", "scenario_ids", "rounds"))
"""Lists whose values all have a checkbox; other lists also accept typed values, such as patterns."""
_TYPED_PREFIX = "further_"
"""Prefix of the field for typed values."""
_BASELINE_FAMILIES = frozenset(("games", "survey"))
USUAL_CALLS = 2000
"""Default budget of an evaluation, if a limit in dollars cannot be enforced."""


class _Member(NamedTuple):
    """A member of a manifest."""

    name: str
    schema: Mapping[str, Any]
    types: Set[str]
    is_required: bool

    @property
    def kind(self) -> FieldKind:
        if self.types == {"array"}:
            return "lines"
        return "box" if self.types == {"boolean"} else "choice" if "enum" in self.schema else "line"

    def usual(self) -> list[str]:
        """Its default as typed text."""
        default = self.schema.get("default")
        if default is None or self.kind == "box":
            return []
        return ["\n".join(map(str, default))] if isinstance(default, list) else [str(default)]


def _list_members(plans: Plans) -> Iterator[_Member]:
    """Yield the members with a field; limits of single models and roles are available only in manifests as JSON."""
    schema = resolve_schema_refs(plans.form.model_json_schema())
    for name, details in schema["properties"].items():
        types = {option.get("type", "") for option in details.get("anyOf", [details])}
        if name != "family" and "object" not in types:
            yield _Member(name, details, types, name in schema.get("required", ()))


def read_manifest_form(family: str, plans: Plans, form: TypedForm) -> dict[str, Any]:
    """Read the manifest of a form. Invalid numbers stay as typed, so that the check refuses them."""
    manifest: dict[str, Any] = {"family": family}
    for member in _list_members(plans):
        name = member.name
        if member.kind == "lines":
            # The ticked values, and each typed line.
            values = [*form.get(name, ()), *form.get(f"{_TYPED_PREFIX}{name}", ())]
            lines = [line.strip() for value in values for line in value.splitlines() if line.strip()]
            manifest |= {name: lines} if lines or member.is_required else {}
        elif member.kind == "box":
            manifest |= {name: True} if form.get(name) else {}
        elif typed := read_field(form, name):
            manifest[name] = typed if "string" in member.types else parse_number(typed)
        elif name in form and member.usual() and "null" in member.types:
            manifest[name] = None
    bounds = {name: parse_number(typed) for name in _BUDGET if (typed := read_field(form, f"budget.{name}"))}
    return manifest | ({"budget": bounds} if bounds else {})


def list_form_fields(family: str, plans: Plans, settings: Settings, form: TypedForm) -> list[FormField]:
    """List the fields with the typed values or the defaults. Raises ConfigError if a models file is invalid."""
    models, fields = list_model_choices(settings), list[FormField]()
    choices = _list_choices(plans, settings)
    choices["models"] = [Choice("baselines", "all baselines")] if family in _BASELINE_FAMILIES else []
    choices["models"] += [Choice(spec.name, spec.name, _mark(spec, lacks), lacks or "") for spec, lacks in models]
    for member in _list_members(plans):
        is_folded = not (member.is_required or member.name in _MAIN or member.name in choices)
        fields += _build_fields(member, choices.get(member.name, []), form, is_folded)
    # Fields with checkboxes first, because they are as wide as the page; models after the fields about their tasks.
    fields.sort(key=lambda field: (field.kind != "boxes", field.name == "models"))
    # A model at an address of its own has no price but that of the models file.
    is_priced = all(not spec.api_base or spec.input_price is not None for spec, lacks in models if lacks is None)
    usual = {"max_cost_usd": "5"} if is_priced else {"max_calls": str(USUAL_CALLS)}
    for name, label in _BUDGET.items():
        typed = form.get(f"budget.{name}", ()) if form else [usual[name]] if name in usual else []
        fields.append(FormField(f"budget.{name}", label, values=typed, hint="Over all runs; empty: no limit."))
    return fields


def _mark(spec: ModelSpec, lacks: str | None) -> str:
    return "" if lacks is None else "not installed" if spec.is_local else "no key"


def _build_fields(member: _Member, choices: Sequence[Choice], form: TypedForm, is_folded: bool) -> list[FormField]:
    name, label = member.name, _LABEL_OF_FIELD.get(member.name) or member.name.replace("_", " ").capitalize()
    hint = member.schema.get("description", "").replace("\n", " ")
    typed = list(form.get(name, ())) if form else member.usual()
    if not choices or member.kind != "lines":
        names = ["yes"] if member.kind == "box" else member.schema.get("enum", ())
        options = [Choice(str(value), label if member.kind == "box" else str(value)) for value in names]
        hint = f"{hint} One per line." if member.kind == "lines" else hint
        return [FormField(name, label, member.kind, typed, hint, options, is_folded)]
    if name in _ONLY_BOXES:
        return [FormField(name, label, "boxes", typed, hint, choices, is_folded)]
    field = f"{_TYPED_PREFIX}{name}"
    others = FormField(field, f"Other {label.lower()}", "lines", form.get(field, ()), f"One per line. {hint}", (), is_folded)
    return [FormField(name, label, "boxes", typed, "", choices, is_folded), others]


def _list_choices(plans: Plans, settings: Settings) -> dict[str, list[Choice]]:
    """List the partitions to choose from, by member: in games approved personas, and scenarios that are not retired."""
    if isinstance(plans, FamilyPlans):
        space = plans.space
        keys = list_known_partitions(settings, space)
        is_whole = not space.second or plans.fields == ("partitions",)
        names = keys if is_whole else list(dict.fromkeys(space.split(key)[0] for key in keys))
        return {plans.fields[0]: [Choice(name, name) for name in names]}
    from assets.games.game_catalog import load_known_personas, load_known_scenarios

    conflicts = dict[str, str]()
    personas = [
        Choice(name, f"{persona.display_name} ({name}, version {persona.version})")
        for name, persona in load_known_personas(settings, conflicts=conflicts).items()
        if name == persona.id and persona.status == "approved"
    ]
    scenarios = [
        Choice(name, f"{name}, version {scenario.version}", scenario.status)
        for name, scenario in load_known_scenarios(settings, conflicts=conflicts).items()
        if scenario.status != "retired"
    ]
    return {"persona_ids": [*personas, Choice("none", "none: the model as itself")], "scenario_ids": scenarios}


def list_model_choices(settings: Settings) -> list[tuple[ModelSpec, str | None]]:
    """List the models of the files, in their order, except computed models and embedders, each with what it lacks, by a quick check.

    Raises ConfigError if a file is invalid.
    """
    # These bring pandas and the response store, which the API starts without.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.gateway.model_checks import find_quick_problem

    return [
        (spec, find_quick_problem(spec, os.environ))
        for spec in load_known_models(settings, COMPUTED_MODELS).specs.values()
        # The models files do not say which models are embedders, and LiteLLM's list takes seconds to load.
        if not (spec.is_computed or spec.model == LOCAL_EMBEDDER or "embed" in f"{spec.name} {spec.model}".lower())
    ]
