"""Pages of personas and scenarios: their values, and the forms for new ones and new versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dtef_pipeline.api.documents.document_history import SERVER_FIELDS, build_document_body
from dtef_pipeline.api.documents.document_kinds import PERSONAS, SCENARIOS, find_name_faults
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.pages.document_pages import DocumentPages
from dtef_pipeline.api.pages.forms import FormField, TypedForm, read_field, read_json
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import convert_faults, make_fault_problem
from dtef_pipeline.api.services import Services
from dtef_pipeline.documents import reasons
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona

_LINE_CHARACTERS = 80


def _persona_values(persona: Persona) -> dict[str, Any]:
    traits = ", ".join(f"{name}: {value}" for name, value in persona.traits.items())
    terms = {"Name": persona.display_name, "Traits": traits or "none"}
    return {"terms_of": terms, "body_title": "System prompt", "body": persona.system_prompt}


def _build_persona_fields(form: TypedForm, before: Persona | None) -> list[FormField]:
    usual = {"system_prompt": before.system_prompt, "traits": _format_traits(before)} if before else {}
    usual |= {"display_name": before.display_name} if before else {}

    def values(name: str) -> list[str]:
        return [form[name][-1] if form.get(name) else usual.get(name, "")]

    id_hint = "Lower-case letters, digits, - and _, at most 61 characters, such as cautious."
    return [
        *([] if before else [FormField("id", "Id", values=values("id"), hint=id_hint)]),
        FormField("display_name", "Name", values=values("display_name"), hint="Display name; reviewers do not see it."),
        FormField("system_prompt", "System prompt", "lines", values("system_prompt"), rows=10),
        FormField("traits", "Traits", "lines", values("traits"), "One per line, such as risk: low."),
    ]


def _format_traits(persona: Persona) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in persona.traits.items()
    )


def _parse_persona(form: TypedForm, persona_id: str | None) -> dict[str, Any]:
    """Parse the document of a form. Raises Problem."""
    texts = {name: read_field(form, name) for name in ("id", "display_name", "system_prompt")}
    texts["system_prompt"] = texts["system_prompt"].replace("\r\n", "\n")
    identity = {"id": persona_id} if persona_id is not None else {}
    traits, faults = _parse_traits(read_field(form, "traits"))
    document = {**texts, **identity, "traits": traits}
    own_faults = [*find_name_faults(texts["display_name"]), *(BodyFault("traits", fault) for fault in faults)]
    if own_faults:
        raise make_fault_problem([*_check_fields(document), *own_faults])
    return document


def _check_fields(document: dict[str, Any]) -> list[BodyFault]:
    """Return the errors of a document's check, which follow those of the form itself."""
    try:
        Persona.model_validate({**document, "version": 1})
    except ValidationError as error:
        return convert_faults(reasons(error, Persona))
    return []


def _parse_traits(words: str) -> tuple[dict[str, Any], list[str]]:
    """Parse traits, one `risk: low` per line: numbers and true or false as such, all else as text. Also returns the errors of invalid
    lines."""
    traits: dict[str, Any] = {}
    faults = []
    for number, line in enumerate(words.splitlines(), 1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not (name and colon and value):
            faults.append(f"line {number}: got {line.strip()[:_LINE_CHARACTERS]!r}; allowed: NAME: VALUE, such as risk: low")
        elif name in traits:
            faults.append(f"line {number}: {name[:_LINE_CHARACTERS]!r} occurs twice")
        traits[name] = _parse_simple(value)
    return traits, faults


def _parse_simple(words: str) -> Any:
    try:
        value = json.loads(words)
    except (ValueError, RecursionError):
        return words
    return value if isinstance(value, int | float | bool) and words not in ("NaN", "Infinity", "-Infinity") else words


def _scenario_values(scenario: ScenarioManifest) -> dict[str, Any]:
    terms = {
        "Description": scenario.description,
        "Engine": scenario.adapter_name,
        "Seats": ", ".join(scenario.seats),
        "Opponents": ", ".join(scenario.opponents) or "none",
        "Seeds": f"{scenario.seeds.count:,} from {scenario.seeds.first:,}",
        "Turns": f"at most {scenario.turn_limit:,}",
    }
    return {"terms_of": terms, "body_title": "Rules", "body": scenario.rules}


def _build_scenario_fields(form: TypedForm, before: ScenarioManifest | Mapping[str, Any] | None) -> list[FormField]:
    """Build the field with the whole manifest. `before`: the previous version, or a template."""
    start: Mapping[str, Any] = build_document_body(before) if isinstance(before, ScenarioManifest) else before or {}
    fields = {field: value for field, value in start.items() if field not in SERVER_FIELDS}
    words = read_field(form, "manifest") if form else json.dumps(fields, ensure_ascii=False, indent=2)
    hint = "Version and status are set automatically. The id is LEAGUE/NAME: lower-case letters, digits and -."
    return [FormField("manifest", "Manifest (JSON)", "code", [words], hint, rows=24)]


def _scenario_templates(services: Services) -> dict[str, Any]:
    return {template["adapter"]: template["manifest"] for template in scenario_templates(services.settings)}


persona_router = DocumentPages(
    PERSONAS, False, lambda item: item.display_name, _persona_values, _parse_persona, _build_persona_fields
).router()
scenario_router = DocumentPages(
    SCENARIOS,
    True,
    lambda item: item.description,
    _scenario_values,
    lambda form, _: read_json(read_field(form, "manifest")),
    _build_scenario_fields,
    _scenario_templates,
).router()
