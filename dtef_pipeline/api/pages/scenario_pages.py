"""Scenarios as pages: their list, each with its rules and versions, its next step, and forms for a new one and for a new version."""

from __future__ import annotations

import json
from typing import Any

from dtef_pipeline.api.documents.document_kinds import SCENARIOS
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.documents.versioned_documents import MADE_HERE, body_of
from dtef_pipeline.api.pages.document_pages import DocumentPages
from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.api.pages.form_parts import Refusal, TypedForm, area_field, one_of, read_json
from dtef_pipeline.api.pages.page_parts import as_lines, folded
from dtef_pipeline.api.services import Services
from dtef_pipeline.games.manifest import ScenarioManifest


def _terms(scenario: ScenarioManifest) -> dict[str, Content]:
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


def _controls(form: TypedForm, before: ScenarioManifest | None, refusal: Refusal, services: Services) -> Html:
    """A text with the whole manifest: a new one begins with a template."""
    templates = [] if before else scenario_templates(services.settings)
    kept: Any = templates[0]["manifest"] if templates else {}
    if before:
        kept = {field: value for field, value in body_of(before).items() if field not in MADE_HERE}
    words = one_of(form, "manifest") if form else json.dumps(kept, ensure_ascii=False, indent=2)
    hint = "Its version and status follow by themselves. Its id is LEAGUE/NAME: lower-case letters, digits and -."
    examples = [folded(f"To start from: {one['adapter']}", as_lines(one["manifest"]), level=3) for one in templates]
    return html(area_field("manifest", "Manifest (JSON)", words, refusal, hint, rows=24, class_="code"), examples)


def _sent(form: TypedForm, scenario_id: str | None) -> Any:
    return read_json(one_of(form, "manifest"))


router = DocumentPages(SCENARIOS, ("manifest",), True, lambda one: one.description, _terms, _rules, _sent, _controls).router()
