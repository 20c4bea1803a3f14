"""Starting an evaluation from a page by the form of its family, with the checks of the API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.evaluation_text import family_title
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
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.plans.family_plans import FamilyPlans
from dtef_pipeline.api.plans.manifest_base import list_known_partitions
from dtef_pipeline.api.plans.manifests import FAMILY_OF_UNNAMED, Plans, load_all_plans, resolve_schema_refs
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
    try:
        values = read_manifest_form(family, _find_plans(family), form)
        answer = post_evaluation(services, holder, values, read_field(form, "once") or None)
    except (Problem, DtefError) as error:
        return _render_new_page(
            request, services, family, form, build_refusal(request, error, tuple(_find_plans(family).form.model_fields))
        )
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

    return page(
        request,
        "new",
        "New evaluation",
        status=refusal.status,
        family=family,
        families={name: family_title(name) for name in FAMILY_BY_NAME},
        form=manifest_form(family, _find_plans(family), services.settings, form),
        refusal=refusal,
        once=uuid4().hex,
    )


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
"""Settings shown with the required ones; the others are collapsed."""
_ONLY_BOXES = frozenset(("persona_ids", "scenario_ids", "rounds"))
"""Lists whose values all have a checkbox; other lists also accept typed values, such as patterns."""
_TYPED_PREFIX = "further_"
"""Prefix of the field for typed values."""
_BASELINE_FAMILIES = frozenset(("games", "survey"))


class ManifestForm(NamedTuple):
    """The fields of a form."""

    main: list[FormField]
    advanced: list[FormField]
    """Settings that most evaluations leave at their defaults."""

    @property
    def fields(self) -> list[FormField]:
        return [*self.main, *self.advanced]


class _Member(NamedTuple):
    """A member of a manifest."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool

    @property
    def types(self) -> set[str]:
        return {option.get("type", "") for option in self.schema.get("anyOf", [self.schema])}

    @property
    def is_list(self) -> bool:
        return self.types == {"array"}

    @property
    def is_flag(self) -> bool:
        return self.types == {"boolean"}

    @property
    def label(self) -> str:
        return _LABEL_OF_FIELD.get(self.name) or self.name.replace("_", " ").capitalize()

    def usual(self) -> list[str]:
        """Its default as typed text."""
        default = self.schema.get("default")
        if default is None or self.is_flag:
            return []
        return ["\n".join(map(str, default))] if isinstance(default, list) else [str(default)]


def _list_members(plans: Plans) -> list[_Member]:
    """Return the members with a field; limits of single models and roles are available only in manifests as JSON."""
    schema = resolve_schema_refs(plans.form.model_json_schema())
    required = schema.get("required", ())
    members = [_Member(name, details, name in required) for name, details in schema["properties"].items() if name != "family"]
    return [member for member in members if "object" not in member.types]


def read_manifest_form(family: str, plans: Plans, form: TypedForm) -> dict[str, Any]:
    """Read the manifest of a form. Invalid numbers stay as typed, so that the check refuses them."""
    manifest: dict[str, Any] = {"family": family}
    for member in _list_members(plans):
        if member.is_list:
            values = _read_lines(form, member.name) + _read_lines(form, f"{_TYPED_PREFIX}{member.name}")
            manifest |= {member.name: values} if values or member.is_required else {}
        elif member.is_flag:
            manifest |= {member.name: True} if form.get(member.name) else {}
        elif typed := read_field(form, member.name):
            manifest[member.name] = typed if "string" in member.types else parse_number(typed)
        elif member.name in form and member.usual() and "null" in member.types:
            manifest[member.name] = None
    bounds = {name: parse_number(typed) for name in _BUDGET if (typed := read_field(form, name))}
    return manifest | ({"budget": bounds} if bounds else {})


def _read_lines(form: TypedForm, name: str) -> list[str]:
    """Read the ticked values and each typed line."""
    return [line.strip() for value in form.get(name, ()) for line in value.splitlines() if line.strip()]


def manifest_form(family: str, plans: Plans, settings: Settings, form: TypedForm) -> ManifestForm:
    """Build the form with the typed values or the defaults. Raises ConfigError if a models file is invalid."""
    choices = _list_choices(family, plans, settings)
    result = ManifestForm([], [])
    for member in _list_members(plans):
        fields = list(_build_fields(member, choices.get(member.name, []), form))
        (result.main if member.is_required or member.name in _MAIN or member.name in choices else result.advanced).extend(
            fields
        )
    # Fields with checkboxes first, because they are as wide as the page; models after the fields about their tasks.
    result.main.sort(key=lambda field: (field.kind != "boxes", field.name == "models"))
    result.main.extend(_build_budget_fields(settings, form))
    return result


def _build_fields(member: _Member, choices: Sequence[Choice], form: TypedForm) -> list[FormField]:
    hint = member.schema.get("description", "").replace("\n", " ")
    typed = list(form.get(member.name, ())) if form else member.usual()
    if not choices or not member.is_list:
        return [_build_text_field(member, typed, hint)]
    boxes = FormField(member.name, member.label, "boxes", typed, "" if member.name not in _ONLY_BOXES else hint, choices)
    if member.name in _ONLY_BOXES:
        return [boxes]
    field, label = f"{_TYPED_PREFIX}{member.name}", f"Other {member.label.lower()}"
    return [boxes, FormField(field, label, "lines", list(form.get(field, ())), f"One per line. {hint}", path=field)]


def _build_text_field(member: _Member, typed: list[str], hint: str) -> FormField:
    if member.is_flag:
        return FormField(member.name, member.label, "box", typed, hint, [Choice("yes", member.label)])
    if names := member.schema.get("enum"):
        return FormField(member.name, member.label, "choice", typed, hint, [Choice(str(name), str(name)) for name in names])
    kind: FieldKind = "lines" if member.is_list else "line"
    return FormField(member.name, member.label, kind, typed, f"{hint} One per line." if member.is_list else hint)


def _build_budget_fields(settings: Settings, form: TypedForm) -> list[FormField]:
    usual = compute_default_budget([choice.spec for choice in list_model_choices(settings) if choice.lacks is None])
    return [
        FormField(
            name,
            label,
            values=form.get(name, ()) if form else [str(usual[name])] if name in usual else [],
            hint="Over all runs; empty: no limit.",
            path=f"budget.{name}",
        )
        for name, label in _BUDGET.items()
    ]


def _list_choices(family: str, plans: Plans, settings: Settings) -> dict[str, list[Choice]]:
    """List the choices by member."""
    baselines = [Choice("baselines", "all baselines")] if family in _BASELINE_FAMILIES else []
    models = [Choice(item.spec.name, item.spec.name, item.mark, item.lacks or "") for item in list_model_choices(settings)]
    choices = {"models": [*baselines, *models]}
    if family == "games":
        return choices | _list_games_choices(settings)
    assert isinstance(plans, FamilyPlans)
    space = plans.source.space
    keys = list_known_partitions(settings, space)
    is_whole = not space.second or plans.field == FamilyPlans.field
    names = keys if is_whole else list(dict.fromkeys(space.split(key)[0] for key in keys))
    return choices | {plans.field: [Choice(name, name) for name in names]}


def _list_games_choices(settings: Settings) -> dict[str, list[Choice]]:
    """List approved personas, and scenarios that are not retired."""
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


USUAL_CALLS = 2000
"""Default budget of an evaluation."""


class ModelChoice(NamedTuple):
    """A text-generating model of the models files."""

    spec: ModelSpec
    lacks: str | None
    """Describes what is missing before the model can be used; None: nothing, according to a quick check."""

    @property
    def mark(self) -> str:
        """The missing requirement in two words; empty: none."""
        return "" if self.lacks is None else "not installed" if self.spec.is_local else "no key"


def list_model_choices(settings: Settings) -> list[ModelChoice]:
    """List all models of the files, in their order, except computed models and embedders. Raises ConfigError if a file is invalid."""
    # These bring pandas and the response store, which the API starts without.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.gateway.model_checks import find_quick_problem

    specs = load_known_models(settings, COMPUTED_MODELS).specs.values()
    return [
        ModelChoice(spec, find_quick_problem(spec, os.environ))
        for spec in specs
        # The models files do not say which models are embedders, and LiteLLM's list takes seconds to load.
        if not (spec.is_computed or spec.model == LOCAL_EMBEDDER or "embed" in f"{spec.name} {spec.model}".lower())
    ]


def compute_default_budget(specs: Iterable[ModelSpec]) -> dict[str, int]:
    """Return the default budget for these models: dollars, or calls if a limit in dollars cannot be enforced."""
    # A model at an address of its own has no price but that of the models file.
    is_priced = all(not spec.api_base or spec.input_price is not None for spec in specs)
    return {"max_cost_usd": 5} if is_priced else {"max_calls": USUAL_CALLS}
