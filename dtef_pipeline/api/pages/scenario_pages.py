"""Scenarios as pages: their list, each with its rules and versions, its next step, and forms for a new one and for a new version."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.documents.scenario_routes import SCENARIOS
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.documents.versioned_documents import MADE_HERE, VersionAsked, body_of
from dtef_pipeline.api.pages.document_pages import DocumentPages
from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.api.pages.form_parts import NOT_REFUSED, Refusal, SentForm, TypedForm, area_field, one_of, read_json
from dtef_pipeline.api.pages.layout import page_router
from dtef_pipeline.api.pages.page_parts import as_lines, folded
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus

router = page_router()


@router.get("/scenarios")
def scenarios_page(request: Request, services: Used, held: Operating, status: ScenarioStatus | None = None) -> Response:
    """The list, and the form of a new one."""
    return _SCENARIO_PAGES.list_page(request, services, status, {}, NOT_REFUSED)


@router.post("/scenarios")
async def make_scenario(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
    """Makes an experimental scenario."""
    return await _SCENARIO_PAGES.make(request, services, form, held.name)


@router.get("/scenarios/{league}/{name}")
def scenario_page(
    request: Request, services: Used, held: Operating, league: str, name: str, version: VersionAsked = None
) -> Response:
    """One scenario."""
    return _SCENARIO_PAGES.one_page(request, services, f"{league}/{name}", version, {}, NOT_REFUSED)


@router.post("/scenarios/{league}/{name}")
async def change_scenario(
    request: Request, services: Used, held: Operating, league: str, name: str, form: SentForm
) -> Response:
    """Makes the next version, experimental."""
    return await _SCENARIO_PAGES.change(request, services, f"{league}/{name}", form, held.name)


@router.post("/scenarios/{league}/{name}/status")
def move_scenario(request: Request, services: Used, held: Operating, league: str, name: str, form: SentForm) -> Response:
    """Promotes or retires a version."""
    return _SCENARIO_PAGES.move(request, services, f"{league}/{name}", form, held.name)


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


_SCENARIO_PAGES = DocumentPages(SCENARIOS, ("manifest",), True, lambda one: one.description, _terms, _rules, _sent, _controls)
