"""The form of a family's manifests, made of their declaration: a field for each member, with its description, its default and its choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dtef_pipeline.api.pages.forms import Choice, FieldKind, FormField, TypedForm, parse_number, read_field
from dtef_pipeline.api.plans.family_plans import FamilyPlans
from dtef_pipeline.api.plans.manifest_base import list_known_partitions
from dtef_pipeline.api.plans.manifests import Plans, resolve_schema_refs
from dtef_pipeline.api.plans.model_choices import compute_default_budget, list_model_choices
from resources.settings import Settings

_BUDGET = {"max_cost_usd": "At most, in US dollars", "max_calls": "At most, in calls"}
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
"""Settings that stand with those that must be given; the others are folded."""
_ONLY_BOXES = frozenset(("persona_ids", "scenario_ids", "rounds"))
"""Lists whose values all have a box; of others more can be typed, such as patterns."""
_TYPED_BESIDE = "further_"
"""Begins the name of the field for these."""
_WITH_BASELINES = frozenset(("games", "survey"))


class ManifestForm(NamedTuple):
    """The fields of a form."""

    main: list[FormField]
    further: list[FormField]
    """Settings that most evaluations leave as they are."""

    @property
    def fields(self) -> list[FormField]:
        return [*self.main, *self.further]


class _Member(NamedTuple):
    """A member of a manifest."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool

    @property
    def types(self) -> set[str]:
        return {one.get("type", "") for one in self.schema.get("anyOf", [self.schema])}

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
        """Its default as it is typed."""
        default = self.schema.get("default")
        if default is None or self.is_flag:
            return []
        return ["\n".join(map(str, default))] if isinstance(default, list) else [str(default)]


def _list_members(plans: Plans) -> list[_Member]:
    """Those that have a field: bounds of single models and roles are left to manifests as JSON."""
    schema = resolve_schema_refs(plans.form.model_json_schema())
    required = schema.get("required", ())
    found = [_Member(name, one, name in required) for name, one in schema["properties"].items() if name != "family"]
    return [one for one in found if "object" not in one.types]


def read_manifest_form(family: str, plans: Plans, form: TypedForm) -> dict[str, Any]:
    """The manifest that a form stands for. What is not a number stays as it was typed, for the check to refuse."""
    found: dict[str, Any] = {"family": family}
    for one in _list_members(plans):
        if one.is_list:
            listed = _read_lines(form, one.name) + _read_lines(form, f"{_TYPED_BESIDE}{one.name}")
            found |= {one.name: listed} if listed or one.is_required else {}
        elif one.is_flag:
            found |= {one.name: True} if form.get(one.name) else {}
        elif typed := read_field(form, one.name):
            found[one.name] = typed if "string" in one.types else parse_number(typed)
        elif one.name in form and one.usual() and "null" in one.types:
            found[one.name] = None
    bounds = {name: parse_number(typed) for name in _BUDGET if (typed := read_field(form, name))}
    return found | ({"budget": bounds} if bounds else {})


def _read_lines(form: TypedForm, name: str) -> list[str]:
    """What was ticked, and each line that was typed."""
    return [line.strip() for value in form.get(name, ()) for line in value.splitlines() if line.strip()]


def manifest_form(family: str, plans: Plans, settings: Settings, form: TypedForm) -> ManifestForm:
    """The form with what was typed, or with what is usual. Raises ConfigError where a models file has a fault."""
    choices = _list_choices(family, plans, settings)
    found = ManifestForm([], [])
    for one in _list_members(plans):
        fields = list(_build_fields(one, choices.get(one.name, []), form))
        (found.main if one.is_required or one.name in _MAIN or one.name in choices else found.further).extend(fields)
    # Those with boxes first, as they are as wide as the page, and the models after what they are asked.
    found.main.sort(key=lambda field: (field.kind != "boxes", field.name == "models"))
    found.main.extend(_build_budget_fields(settings, form))
    return found


def _build_fields(member: _Member, choices: Sequence[Choice], form: TypedForm) -> list[FormField]:
    hint = member.schema.get("description", "").replace("\n", " ")
    typed = list(form.get(member.name, ())) if form else member.usual()
    if not choices or not member.is_list:
        return [_build_text_field(member, typed, hint)]
    boxes = FormField(member.name, member.label, "boxes", typed, "" if member.name not in _ONLY_BOXES else hint, choices)
    if member.name in _ONLY_BOXES:
        return [boxes]
    beside, label = f"{_TYPED_BESIDE}{member.name}", f"Further {member.label.lower()}"
    return [boxes, FormField(beside, label, "lines", list(form.get(beside, ())), f"One a line. {hint}", rows=2, path=beside)]


def _build_text_field(member: _Member, typed: list[str], hint: str) -> FormField:
    if member.is_flag:
        return FormField(member.name, member.label, "box", typed, hint, [Choice("yes", member.label)])
    if allowed := member.schema.get("enum"):
        return FormField(member.name, member.label, "choice", typed, hint, [Choice(str(one), str(one)) for one in allowed])
    kind: FieldKind = "lines" if member.is_list else "line"
    return FormField(member.name, member.label, kind, typed, f"{hint} One a line." if member.is_list else hint, rows=2)


def _build_budget_fields(settings: Settings, form: TypedForm) -> list[FormField]:
    usual = compute_default_budget([one.spec for one in list_model_choices(settings) if one.lacks is None])
    return [
        FormField(
            name,
            label,
            values=form.get(name, ()) if form else [str(usual[name])] if name in usual else [],
            hint="Over all runs; empty: no bound.",
            path=f"budget.{name}",
        )
        for name, label in _BUDGET.items()
    ]


def _list_choices(family: str, plans: Plans, settings: Settings) -> dict[str, list[Choice]]:
    """What can be ticked, by member."""
    baselines = [Choice("baselines", "all baselines")] if family in _WITH_BASELINES else []
    offered = [Choice(one.spec.name, one.spec.name, one.mark, one.lacks or "") for one in list_model_choices(settings)]
    found = {"models": [*baselines, *offered]}
    if family == "games":
        return found | _list_games_choices(settings)
    assert isinstance(plans, FamilyPlans)
    space = plans.source.space
    known = list_known_partitions(settings, space)
    is_whole = not space.second or plans.field == FamilyPlans.field
    names = known if is_whole else list(dict.fromkeys(space.split(key)[0] for key in known))
    return found | {plans.field: [Choice(one, one) for one in names]}


def _list_games_choices(settings: Settings) -> dict[str, list[Choice]]:
    """Personas that are approved, and scenarios that are not retired."""
    from assets.games.game_catalog import load_known_personas, load_known_scenarios

    unplayed = dict[str, str]()
    personas = [
        Choice(name, f"{one.display_name} ({name}, version {one.version})")
        for name, one in load_known_personas(settings, conflicts=unplayed).items()
        if name == one.id and one.status == "approved"
    ]
    scenarios = [
        Choice(name, f"{name}, version {one.version}", one.status)
        for name, one in load_known_scenarios(settings, conflicts=unplayed).items()
        if one.status != "retired"
    ]
    return {"persona_ids": [*personas, Choice("none", "none: the model as itself")], "scenario_ids": scenarios}
