"""Personas as pages: their list, each with its versions, its next step, and forms for a new one and for a new version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.document_pages import changed, list_of, made, moved, seen_field, steps_of, unfolded, versions_of
from dtef_pipeline.api.elements import Html, element
from dtef_pipeline.api.form_parts import NOT_REFUSED, Refusal, SentForm, area_field, faults_above, one_of, text_field
from dtef_pipeline.api.layout import page, page_router
from dtef_pipeline.api.page_parts import badge, listed
from dtef_pipeline.api.persona_routes import PERSONAS
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.api.versioned import KnownDocuments, VersionAsked, Versioned
from dtef_pipeline.games.personas import Persona, PersonaStatus

_PERSONA_FIELDS = ("id", "display_name", "system_prompt", "traits")
_Typed = Mapping[str, Sequence[str]]

router = page_router()


@router.get("/personas")
def personas_page(request: Request, services: Used, held: Operating, status: PersonaStatus | None = None) -> Response:
    """The list, and the form of a new one."""
    return _list_page(request, services, status, {}, NOT_REFUSED)


@router.post("/personas")
async def make_persona(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
    """Makes a draft."""
    found = await made(PERSONAS, request, services, _sent(form), held.name, _PERSONA_FIELDS)
    if isinstance(found, Response):
        return found
    return await run_in_threadpool(_list_page, request, services, None, form, found)


@router.get("/personas/{persona_id}")
def persona_page(request: Request, services: Used, held: Operating, persona_id: str, version: VersionAsked = None) -> Response:
    """One persona."""
    return _one_page(request, services, persona_id, version, {}, NOT_REFUSED)


@router.post("/personas/{persona_id}")
async def change_persona(request: Request, services: Used, held: Operating, persona_id: str, form: SentForm) -> Response:
    """Makes the next version, a draft."""
    given, seen = {**_sent(form), "id": persona_id}, one_of(form, "seen")
    found = await changed(PERSONAS, request, services, persona_id, given, held.name, seen, _PERSONA_FIELDS)
    if isinstance(found, Response):
        return found
    return await run_in_threadpool(_one_page, request, services, persona_id, None, form, found)


@router.post("/personas/{persona_id}/status")
def move_persona(request: Request, services: Used, held: Operating, persona_id: str, form: SentForm) -> Response:
    """Approves or retires a version."""
    return moved(PERSONAS, request, services, persona_id, {name: one_of(form, name) for name in form}, held.name)


def _list_page(request: Request, services: Services, status: str | None, form: _Typed, refusal: Refusal) -> Response:
    fields = text_field("id", "Id", one_of(form, "id"), refusal, "Lower case letters, digits and hyphens, such as cautious.")
    new = element(
        "form", faults_above(refusal, _PERSONA_FIELDS), fields, _fields(form, None, refusal), method="post", action="/personas"
    )
    shown = list_of(PERSONAS, services, status, lambda one: one.display_name)
    return page(request, "Personas", shown, unfolded("New persona", new, bool(form)), status=refusal.status)


def _one_page(
    request: Request, services: Services, persona_id: str, version: int | None, form: _Typed, refusal: Refusal
) -> Response:
    known = KnownDocuments.now(PERSONAS, services)
    shown, latest = known.one(persona_id, version), known.one(persona_id)
    assert isinstance(shown, Persona)
    assert isinstance(latest, Persona)
    traits = ", ".join(f"{name}: {value}" for name, value in shown.traits.items())
    terms = {
        "Status": badge(shown.status),
        "Version": f"{shown.version}" if shown is latest else f"{shown.version}, not the latest",
        "Name": shown.display_name,
        "Traits": traits or "none",
    }
    prompt = element(
        "section", element("h2", "What the model is told"), element("pre", shown.system_prompt, class_="raw", tabindex="0")
    )
    change = element(
        "form",
        faults_above(refusal, _PERSONA_FIELDS),
        seen_field(latest, one_of(form, "seen"), refusal),
        _fields(form, latest, refusal),
        method="post",
        action=f"/personas/{persona_id}",
    )
    body = (
        listed(terms),
        steps_of(PERSONAS, shown),
        prompt,
        element("h2", "Versions"),
        versions_of(PERSONAS, known, persona_id),
    )
    title = f"Make version {latest.version + 1}"
    return page(request, f"Persona {persona_id}", *body, unfolded(title, change, bool(form)), status=refusal.status)


def _fields(form: _Typed, before: Versioned | None, refusal: Refusal) -> Html:
    """What was typed, else what the latest version has."""
    assert before is None or isinstance(before, Persona)
    usual = (
        {"display_name": before.display_name, "system_prompt": before.system_prompt, "traits": _as_lines(before)}
        if before
        else {}
    )

    def value(name: str) -> str:
        return form[name][-1] if form.get(name) else usual.get(name, "")

    hint = "Each on a line of its own, such as risk: low."
    return element(
        "div",
        text_field("display_name", "Name", value("display_name"), refusal, "What people call it; reviewers do not see it."),
        area_field("system_prompt", "What the model is told", value("system_prompt"), refusal, rows=10),
        area_field("traits", "Traits", value("traits"), refusal, hint, rows=4),
        element("button", "Save as a draft", type="submit", class_="main"),
    )


def _as_lines(persona: Persona) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in persona.traits.items()
    )


def _sent(form: _Typed) -> dict[str, Any]:
    """The document that a form stands for."""
    texts = {name: one_of(form, name) for name in ("id", "display_name", "system_prompt")}
    texts["system_prompt"] = texts["system_prompt"].replace("\r\n", "\n")
    return {**texts, "traits": _traits(one_of(form, "traits"))}


def _traits(words: str) -> dict[str, Any]:
    """`risk: low` a line: numbers and true or false are what they say, all else is text."""
    found = {}
    for line in filter(None, map(str.strip, words.splitlines())):
        name, _, said = (part.strip() for part in line.partition(":"))
        found[name] = _simple(said)
    return found


def _simple(said: str) -> Any:
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return said
    return value if isinstance(value, int | float | bool) and said not in ("NaN", "Infinity", "-Infinity") else said
