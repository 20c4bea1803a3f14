"""Scenarios as pages: their list, each with its rules and versions, its next step, and forms for a new one and for a new version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.document_pages import changed, list_of, made, moved, seen_field, steps_of, unfolded, versions_of
from dtef_pipeline.api.elements import Content, Html, element
from dtef_pipeline.api.form_parts import NOT_REFUSED, Refusal, SentForm, area_field, faults_above, one_of
from dtef_pipeline.api.layout import page, page_router
from dtef_pipeline.api.page_parts import as_lines, badge, folded, listed
from dtef_pipeline.api.scenario_routes import SCENARIOS
from dtef_pipeline.api.scenario_templates import scenario_templates
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.api.versioned import MADE_HERE, KnownDocuments, VersionAsked, body_of
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus

_TypedForm = Mapping[str, Sequence[str]]

router = page_router()


@router.get("/scenarios")
def scenarios_page(request: Request, services: Used, held: Operating, status: ScenarioStatus | None = None) -> Response:
    """The list, and the form of a new one."""
    return _list_page(request, services, status, {}, NOT_REFUSED)


@router.post("/scenarios")
async def make_scenario(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
    """Makes an experimental scenario."""
    found = await made(SCENARIOS, request, services, _sent(form), held.name, ())
    if isinstance(found, Response):
        return found
    return await run_in_threadpool(_list_page, request, services, None, form, found)


@router.get("/scenarios/{league}/{name}")
def scenario_page(
    request: Request, services: Used, held: Operating, league: str, name: str, version: VersionAsked = None
) -> Response:
    """One scenario."""
    return _one_page(request, services, f"{league}/{name}", version, {}, NOT_REFUSED)


@router.post("/scenarios/{league}/{name}")
async def change_scenario(
    request: Request, services: Used, held: Operating, league: str, name: str, form: SentForm
) -> Response:
    """Makes the next version, experimental."""
    scenario_id = f"{league}/{name}"
    found = await changed(SCENARIOS, request, services, scenario_id, _sent(form), held.name, one_of(form, "seen"), ())
    if isinstance(found, Response):
        return found
    return await run_in_threadpool(_one_page, request, services, scenario_id, None, form, found)


@router.post("/scenarios/{league}/{name}/status")
def move_scenario(request: Request, services: Used, held: Operating, league: str, name: str, form: SentForm) -> Response:
    """Promotes or retires a version."""
    given = {field: one_of(form, field) for field in form}
    return moved(SCENARIOS, request, services, f"{league}/{name}", given, held.name)


def _list_page(request: Request, services: Services, status: str | None, form: _TypedForm, refusal: Refusal) -> Response:
    shown = list_of(SCENARIOS, services, status, lambda one: one.description)
    templates = scenario_templates(services.settings)
    usual = json.dumps(templates[0]["manifest"], ensure_ascii=False, indent=2) if templates else "{}"
    examples = [folded(f"To start from: {one['adapter']}", as_lines(one["manifest"])) for one in templates]
    new = _form("/scenarios", one_of(form, "manifest") or usual, refusal, None)
    return page(request, "Scenarios", shown, unfolded("New scenario", [new, examples], bool(form)), status=refusal.status)


def _one_page(
    request: Request, services: Services, scenario_id: str, version: int | None, form: _TypedForm, refusal: Refusal
) -> Response:
    known = KnownDocuments.now(SCENARIOS, services)
    shown, latest = known.one(scenario_id, version), known.one(scenario_id)
    assert isinstance(shown, ScenarioManifest)
    assert isinstance(latest, ScenarioManifest)
    terms: dict[str, Content] = {
        "Status": badge(shown.status),
        "Version": f"{shown.version}" if shown is latest else f"{shown.version}, not the latest",
        "What it is": shown.description,
        "Engine": shown.adapter_name,
        "Seats": ", ".join(shown.seats),
        "Opponents": ", ".join(shown.opponents) or "none",
        "Seeds": f"{shown.seeds.count:,} from {shown.seeds.first:,}",
        "Turns": f"at most {shown.turn_limit:,}",
    }
    rules = element("section", element("h2", "Rules"), element("pre", shown.rules, class_="raw", tabindex="0"))
    whole = folded("The whole manifest", as_lines(body_of(shown)))
    kept = {field: value for field, value in body_of(latest).items() if field not in MADE_HERE}
    before = one_of(form, "manifest") or json.dumps(kept, ensure_ascii=False, indent=2)
    change = _form(f"/scenarios/{scenario_id}", before, refusal, seen_field(latest, one_of(form, "seen"), refusal))
    body = (
        listed(terms),
        steps_of(SCENARIOS, shown),
        rules,
        whole,
        element("h2", "Versions"),
        versions_of(SCENARIOS, known, scenario_id),
    )
    title = f"Make version {latest.version + 1}"
    return page(request, f"Scenario {scenario_id}", *body, unfolded(title, change, bool(form)), status=refusal.status)


def _form(action: str, words: str, refusal: Refusal, seen: Html | None) -> Html:
    return element(
        "form",
        faults_above(refusal, ()),
        seen,
        area_field(
            "manifest",
            "Manifest (JSON)",
            words,
            NOT_REFUSED,
            "Its version and status follow by themselves.",
            rows=24,
            class_="code",
        ),
        element("button", "Save as experimental", type="submit", class_="main"),
        method="post",
        action=action,
    )


def _sent(form: _TypedForm) -> Any:
    """The document of a form; what is no JSON is told as the API tells it."""
    words = one_of(form, "manifest")
    try:
        found = json.loads(words)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return words.encode("utf-8", "replace")
    return found
