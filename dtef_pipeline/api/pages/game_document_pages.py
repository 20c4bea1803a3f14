"""Personas and scenarios as pages: what is shown of each, and the forms for a new one and for a new version."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from dtef_pipeline.api.documents.document_kinds import PERSONAS, SCENARIOS, faults_of_name
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.documents.versioned_documents import MADE_HERE, body_of
from dtef_pipeline.api.pages.document_pages import DocumentPages
from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.api.pages.form_parts import Refusal, TypedForm, area_field, one_of, read_json, text_field
from dtef_pipeline.api.pages.page_parts import as_lines, folded
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import body_faults, faulty
from dtef_pipeline.api.services import Services
from dtef_pipeline.documents import reasons
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona

_PERSONA_FIELDS = ("id", "display_name", "system_prompt", "traits")
_SHOWN_OF_LINE = 80


def _terms_of_persona(persona: Persona) -> dict[str, Content]:
    traits = ", ".join(f"{name}: {value}" for name, value in persona.traits.items())
    return {"Name": persona.display_name, "Traits": traits or "none"}


def _prompt(persona: Persona) -> Html:
    words = element("pre", persona.system_prompt, class_="raw", dir="auto", tabindex="0")
    return element("section", element("h2", "What the model is told"), words)


def _controls_of_persona(form: TypedForm, before: Persona | None, refusal: Refusal, services: Services) -> Html:
    usual = {"system_prompt": before.system_prompt, "traits": _as_lines(before)} if before else {}
    usual |= {"display_name": before.display_name} if before else {}

    def value(name: str) -> str:
        return form[name][-1] if form.get(name) else usual.get(name, "")

    id_hint = "Lower-case letters, digits, - and _, at most 61 characters, such as cautious."
    hint = "Each on a line of its own, such as risk: low."
    return html(
        None if before else text_field("id", "Id", value("id"), refusal, id_hint),
        text_field("display_name", "Name", value("display_name"), refusal, "What people call it; reviewers do not see it."),
        area_field("system_prompt", "What the model is told", value("system_prompt"), refusal, rows=10, dir="auto"),
        area_field("traits", "Traits", value("traits"), refusal, hint, rows=4),
    )


def _as_lines(persona: Persona) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in persona.traits.items()
    )


def _sent_of_persona(form: TypedForm, persona_id: str | None) -> dict[str, Any]:
    """The document that a form stands for. Raises Problem."""
    texts = {name: one_of(form, name) for name in ("id", "display_name", "system_prompt")}
    texts["system_prompt"] = texts["system_prompt"].replace("\r\n", "\n")
    known = {"id": persona_id} if persona_id is not None else {}
    traits, faults = _traits(one_of(form, "traits"))
    document = {**texts, **known, "traits": traits}
    told = [*faults_of_name(texts["display_name"]), *(BodyFault("traits", one) for one in faults)]
    if told:
        raise faulty([*_faults_of_fields(document), *told])
    return document


def _faults_of_fields(document: dict[str, Any]) -> list[BodyFault]:
    """What the check of a document would say, which a fault of the form's own comes before."""
    try:
        Persona.model_validate({**document, "version": 1})
    except ValidationError as error:
        return body_faults(reasons(error, Persona))
    return []


def _traits(words: str) -> tuple[dict[str, Any], list[str]]:
    """`risk: low` a line: numbers and true or false are what they say, all else is text. With what is wrong with other lines."""
    found: dict[str, Any] = {}
    faults = []
    for number, line in enumerate(words.splitlines(), 1):
        name, colon, said = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not (name and colon and said):
            faults.append(f"line {number}: got {line.strip()[:_SHOWN_OF_LINE]!r}; allowed: NAME: VALUE, such as risk: low")
        elif name in found:
            faults.append(f"line {number}: {name[:_SHOWN_OF_LINE]!r} stands twice")
        found[name] = _simple(said)
    return found, faults


def _simple(said: str) -> Any:
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return said
    return value if isinstance(value, int | float | bool) and said not in ("NaN", "Infinity", "-Infinity") else said


persona_router = DocumentPages(
    PERSONAS,
    _PERSONA_FIELDS,
    False,
    lambda one: one.display_name,
    _terms_of_persona,
    _prompt,
    _sent_of_persona,
    _controls_of_persona,
).router()


def _terms_of_scenario(scenario: ScenarioManifest) -> dict[str, Content]:
    return {
        "What it is": scenario.description,
        "Engine": scenario.adapter_name,
        "Seats": ", ".join(scenario.seats),
        "Opponents": ", ".join(scenario.opponents) or "none",
        "Seeds": f"{scenario.seeds.count:,} from {scenario.seeds.first:,}",
        "Turns": f"at most {scenario.turn_limit:,}",
    }


def _rules(scenario: ScenarioManifest) -> Html:
    rules = element("pre", scenario.rules, class_="raw", dir="auto", tabindex="0")
    return html(element("section", element("h2", "Rules"), rules), folded("The whole manifest", as_lines(body_of(scenario))))


def _controls_of_scenario(form: TypedForm, before: ScenarioManifest | None, refusal: Refusal, services: Services) -> Html:
    """A text with the whole manifest: a new one begins with a template."""
    templates = [] if before else scenario_templates(services.settings)
    kept: Any = templates[0]["manifest"] if templates else {}
    if before:
        kept = {field: value for field, value in body_of(before).items() if field not in MADE_HERE}
    words = one_of(form, "manifest") if form else json.dumps(kept, ensure_ascii=False, indent=2)
    hint = "Its version and status follow by themselves. Its id is LEAGUE/NAME: lower-case letters, digits and -."
    examples = [folded(f"To start from: {one['adapter']}", as_lines(one["manifest"]), level=3) for one in templates]
    return html(area_field("manifest", "Manifest (JSON)", words, refusal, hint, rows=24, class_="code"), examples)


def _sent_of_scenario(form: TypedForm, scenario_id: str | None) -> Any:
    return read_json(one_of(form, "manifest"))


_SCENARIO_PAGES = DocumentPages(
    SCENARIOS,
    ("manifest",),
    True,
    lambda one: one.description,
    _terms_of_scenario,
    _rules,
    _sent_of_scenario,
    _controls_of_scenario,
)
scenario_router = _SCENARIO_PAGES.router()
