"""Starting an evaluation from a page: by the form of its family, or by a manifest as JSON, with the checks of the API."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.forms import (
    NOT_REFUSED,
    FormField,
    Refusal,
    SentForm,
    TypedForm,
    build_refusal,
    read_field,
    read_json,
)
from dtef_pipeline.api.pages.manifest_forms import manifest_form, read_manifest_form
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.part_words import family_title
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.plans.manifest_examples import manifest_examples
from dtef_pipeline.api.plans.manifests import FAMILY_OF_UNNAMED, load_all_plans
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.queue_routes import post_evaluation
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.errors import DtefError

router = build_page_router()


@router.get("/new")
def new_page(request: Request, services: ServicesDep, held: OperatorToken, family: str = FAMILY_OF_UNNAMED) -> Response:
    """The forms of a family."""
    return _render_new_page(request, services, family, {}, NOT_REFUSED)


@router.post("/new")
def start_by_form(request: Request, services: ServicesDep, held: OperatorToken, form: SentForm) -> Response:
    """Submit the form of a family."""
    family = read_field(form, "family") or FAMILY_OF_UNNAMED
    try:
        return _start(services, held, read_manifest_form(family, _find_plans(family), form), form)
    except (Problem, DtefError) as error:
        return _render_new_page(
            request, services, family, form, build_refusal(request, error, tuple(_find_plans(family).form.model_fields))
        )


@router.post("/new/manifest")
def start_by_manifest(request: Request, services: ServicesDep, held: OperatorToken, form: SentForm) -> Response:
    """Submit a manifest as JSON."""
    family = read_field(form, "family")
    try:
        return _start(services, held, _parse_object(read_field(form, "manifest")), form)
    except (Problem, DtefError) as error:
        return _render_new_page(request, services, family, form, build_refusal(request, error, ()).nest_under("manifest"))


def _find_plans(family: str) -> Any:
    """Find the plans of a family. Raises Problem 404 for an unknown family."""
    plans = load_all_plans()
    if family not in plans:
        raise Problem(404, f"unknown family {family[:80]!r}; allowed: {', '.join(plans)}")
    return plans[family]


def _start(services: Services, holder: OperatorToken, values: dict[str, Any], form: TypedForm) -> Response:
    """Redirect to the page of the started evaluation."""
    answer = post_evaluation(services, holder, values, read_field(form, "once") or None)
    return redirect_to_page(f"/queue/{json.loads(bytes(answer.body))['queue_id']}")


def _parse_object(words: str) -> dict[str, Any]:
    """Parse the object of a JSON text. Raises Problem."""
    value = read_json(words)
    if not isinstance(value, dict):
        raise Problem(422, f"got {words[:80]!r}; allowed: an object, such as the example")
    return value


def _render_new_page(request: Request, services: Services, family: str, form: TypedForm, refusal: Refusal) -> Response:
    """Render the form of a family and, below it, a manifest as JSON; a refused one keeps the typed values."""
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILY_BY_NAME

    family = family or FAMILY_OF_UNNAMED
    is_manifest = "manifest" in form
    fields = manifest_form(family, _find_plans(family), services.settings, {} if is_manifest else form)
    example = manifest_examples(services.settings).get(family, {"family": family})
    words = read_field(form, "manifest") if is_manifest else json.dumps(example, indent=2)
    hint = "The manifest as a JSON object, which may have members without a field in the form, such as limits by model or role."
    return page(
        request,
        "new",
        "New evaluation",
        status=refusal.status,
        family=family,
        families={name: family_title(name) for name in FAMILY_BY_NAME},
        form=fields,
        manifest=FormField("manifest", "Manifest (JSON)", "code", [words], hint, rows=16),
        is_manifest=is_manifest,
        form_refusal=NOT_REFUSED if is_manifest else refusal,
        manifest_refusal=refusal if is_manifest else NOT_REFUSED,
        once=uuid4().hex,
    )
