"""Starting an evaluation from a page: games by fields, any family by its manifest as JSON. Both are checked as the API checks them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from fastapi import Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.form_parts import (
    NOT_REFUSED,
    Refusal,
    SentForm,
    TypedForm,
    area_field,
    choices_field,
    faults_above,
    number_typed,
    one_of,
    read_json,
    refusal_of,
    text_field,
)
from dtef_pipeline.api.pages.layout import page, page_router, to_page
from dtef_pipeline.api.pages.page_parts import badge, folded, foreign
from dtef_pipeline.api.plans.games_plan import GamesManifest
from dtef_pipeline.api.plans.manifest_base import BOUND_BY_COST
from dtef_pipeline.api.plans.manifest_examples import manifest_examples
from dtef_pipeline.api.plans.offered_models import OfferedModel, offered_models, usual_budget
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.evaluation_routes import post_evaluation
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.errors import DtefError

_GAMES_FIELDS = tuple(GamesManifest.model_fields)
_TICKED_FOR_ITSELF = "none"
_BASELINES_BOX = "baselines"

router = page_router()


@router.get("/new")
def new_page(request: Request, services: Used, held: Operating, example: str = "") -> Response:
    """Both forms; with the name of a family, its example to start from."""
    found = manifest_examples(services.settings).get(example) if example else None
    return _page(request, services, {"manifest": [json.dumps(found, indent=2)]} if found else {}, NOT_REFUSED)


@router.post("/new")
def start_games(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
    """Takes the form of games."""
    try:
        return _start(services, held, games_manifest(form), form)
    except (Problem, DtefError) as error:
        return _page(request, services, form, refusal_of(request, error, _GAMES_FIELDS))


@router.post("/new/manifest")
def start_any(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
    """Takes a manifest as JSON."""
    try:
        return _start(services, held, _parsed(one_of(form, "manifest")), form)
    except (Problem, DtefError) as error:
        return _page(request, services, form, refusal_of(request, error, ()).within("manifest"))


def _start(services: Services, held: Operating, values: dict[str, Any], form: TypedForm) -> Response:
    """The page of the evaluation that was started."""
    answer = post_evaluation(services, held, values, one_of(form, "once") or None)
    return to_page(f"/queue/{json.loads(bytes(answer.body))['queue_id']}")


def games_manifest(form: TypedForm) -> dict[str, Any]:
    """The manifest that a form of games stands for. What is no number stays as it was typed, for the check to refuse."""
    listed = {
        "persona_ids": list(form.get("persona_ids", ())),
        "scenario_ids": list(form.get("scenario_ids", ())),
        "models": [*form.get("models", ()), *_separated(one_of(form, "further_models"))],
        "opponents": _separated(one_of(form, "opponents")),
    }
    texts = {name: said for name in ("seeds", "snapshot") if (said := one_of(form, name))}
    draws = {"draws": number_typed(said)} if (said := one_of(form, "draws")) else {}
    bounds = {name: number_typed(said) for name in ("max_cost_usd", "max_calls") if (said := one_of(form, name))}
    return {"family": "games", **listed, **texts, **draws, **({"budget": bounds} if bounds else {})}


def _separated(words: str) -> list[str]:
    return [one for one in re.split(r"[\s;]+", words) if one]


def _parsed(words: str) -> dict[str, Any]:
    """The object of a JSON text. Raises Problem."""
    found = read_json(words)
    if not isinstance(found, dict):
        raise Problem(422, f"got {words[:80]!r}; allowed: an object, as in the examples")
    return found


def _page(request: Request, services: Services, form: TypedForm, refusal: Refusal) -> Response:
    of_manifest = "manifest" in form
    games = _games_form(services, {} if of_manifest else form, NOT_REFUSED if of_manifest else refusal)
    any_family = _manifest_form(services, form, refusal if of_manifest else NOT_REFUSED)
    parts = (any_family, games) if of_manifest else (games, any_family)
    return page(request, "New evaluation", *parts, status=refusal.status)


def _once() -> Html:
    """Sent twice, a form starts one evaluation."""
    return element("input", type="hidden", name="once", value=uuid4().hex)


def _games_form(services: Services, form: TypedForm, refusal: Refusal) -> Html:
    offered = offered_models(services.settings)
    personas, scenarios, models = _choices(services, offered)
    bounds = usual_budget([one.spec for one in offered if one.lacks is None])

    def text(name: str, label: str, hint: str, usual: str = "", path: str = "") -> Html:
        beside = Refusal(refusal.status, [BodyFault(name, one.message) for one in refusal.of(path)]) if path else refusal
        return text_field(name, label, one_of(form, name) if form else usual, beside, hint)

    def bound(name: str) -> str:
        return str(bounds.get(name, ""))

    return element(
        "form",
        element("h2", "Games"),
        faults_above(refusal, _GAMES_FIELDS),
        choices_field("persona_ids", "Personas", personas, form.get("persona_ids", ()), refusal, "Those that are approved."),
        choices_field("scenario_ids", "Scenarios", scenarios, form.get("scenario_ids", ()), refusal),
        choices_field("models", "Models", models, form.get("models", ()), refusal),
        text(
            "further_models",
            "Further models",
            "Names with spaces between them: NAME@temperature=0.7, PROVIDER/MODEL, collections.",
        ),
        element(
            "div",
            text("seeds", "Seeds", "Such as 1-20; empty: those of each scenario."),
            text("draws", "Draws", "How often each episode is played.", "1"),
            text("opponents", "Opponents", "Empty: those of each scenario."),
            text(
                "max_cost_usd",
                "At most, in US dollars",
                "Over all runs; empty: no bound.",
                bound("max_cost_usd"),
                BOUND_BY_COST,
            ),
            text("max_calls", "At most, in calls", "Over all runs; empty: no bound.", bound("max_calls"), "budget.max_calls"),
            text("snapshot", "Snapshot", "Answers that a snapshot has already are not bought again.", "base"),
            class_="columns",
        ),
        _once(),
        element("button", "Start the games", type="submit", class_="main"),
        method="post",
        action="/new",
    )


def _choices(
    services: Services, offered: Sequence[OfferedModel]
) -> tuple[dict[str, Content], dict[str, Content], dict[str, Content]]:
    """Personas, scenarios and models to choose from."""
    from assets.games.known_games import known_personas, known_scenarios

    settings, unplayed = services.settings, dict[str, str]()
    personas: dict[str, Content] = {
        name: html(foreign(one.display_name), f" ({name}, version {one.version})")
        for name, one in known_personas(settings, conflicts=unplayed).items()
        if name == one.id and one.status == "approved"
    }
    scenarios: dict[str, Content] = {
        name: html(f"{name}, version {one.version} ", badge(one.status))
        for name, one in known_scenarios(settings, conflicts=unplayed).items()
        if one.status != "retired"
    }
    models: dict[str, Content] = {_BASELINES_BOX: "all baselines of a scenario"}
    models |= {one.spec.name: _told_model(one) for one in offered}
    return {**personas, _TICKED_FOR_ITSELF: "none: the model as itself"}, scenarios, models


def _told_model(one: OfferedModel) -> Content:
    """Its name, and in brief why it cannot be asked here; the pointer on that tells it in full."""
    name = one.spec.name
    return html(f"{name} ", element("span", one.mark, class_="hint", title=one.lacks)) if one.lacks else name


def _manifest_form(services: Services, form: TypedForm, refusal: Refusal) -> Html:
    shown = manifest_examples(services.settings)
    examples = [
        folded(
            f"Example: {family}",
            element("pre", json.dumps(one, indent=2), class_="raw", tabindex="0"),
            element("p", link(f"/new?example={family}", f"Start from this example of {family}")),
            level=3,
        )
        for family, one in shown.items()
    ]
    words = one_of(form, "manifest") if "manifest" in form else json.dumps(shown["survey"], indent=2)
    hint = "What is asked, as a JSON object; below are examples to start from."
    return element(
        "form",
        element("h2", "Any family, by its manifest"),
        faults_above(refusal, ("manifest",)),
        area_field("manifest", "Manifest (JSON)", words, refusal, hint, rows=16, class_="code"),
        _once(),
        element("button", "Start the evaluation", type="submit", class_="main"),
        examples,
        method="post",
        action="/new/manifest",
    )
