"""The form of a family's manifests, generated from their declaration: a field per member, with its description, default and choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dtef_pipeline.api.pages.forms import Choice, FieldKind, FormField, TypedForm, parse_number, read_field
from dtef_pipeline.api.plans.family_plans import FamilyPlans
from dtef_pipeline.api.plans.manifest_base import list_known_partitions
from dtef_pipeline.api.plans.manifests import Plans, resolve_schema_refs
from dtef_pipeline.api.plans.model_choices import compute_default_budget, list_model_choices
from resources.settings import Settings

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
    beside, label = f"{_TYPED_PREFIX}{member.name}", f"Other {member.label.lower()}"
    return [boxes, FormField(beside, label, "lines", list(form.get(beside, ())), f"One per line. {hint}", rows=2, path=beside)]


def _build_text_field(member: _Member, typed: list[str], hint: str) -> FormField:
    if member.is_flag:
        return FormField(member.name, member.label, "box", typed, hint, [Choice("yes", member.label)])
    if names := member.schema.get("enum"):
        return FormField(member.name, member.label, "choice", typed, hint, [Choice(str(name), str(name)) for name in names])
    kind: FieldKind = "lines" if member.is_list else "line"
    return FormField(member.name, member.label, kind, typed, f"{hint} One per line." if member.is_list else hint, rows=2)


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
