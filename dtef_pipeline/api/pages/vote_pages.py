"""Votes of reviewers with a form that makes pairs, the preference board, and the log of actions."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import ValidationError

from dtef_pipeline.api.access import AdminToken, OperatorToken
from dtef_pipeline.api.pages.evaluation_text import family_title
from dtef_pipeline.api.pages.forms import (
    NOT_REFUSED,
    Choice,
    FormField,
    Refusal,
    SentForm,
    TypedForm,
    build_refusal,
    parse_number,
    read_field,
)
from dtef_pipeline.api.pages.page_routes import build_page_router, page, redirect_to_page
from dtef_pipeline.api.problems import Problem, convert_faults
from dtef_pipeline.api.review.feedback_routes import (
    LARGEST_PLACE,
    FeedbackDep,
    PairRequest,
    compute_current_version,
    find_stale_reason,
    make_pairs,
)
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import DtefError
from resources.votes.vote_queries import list_latest_actions, vote_counts
from resources.votes.vote_tables import decode_time

_REVIEWERS_SHOWN = 100
_PAIRING_FIELDS = ("family", "max_pairs", "baselines")
_ACTIONS_A_PAGE = 100
_Number = Annotated[int | None, Query(ge=0, le=LARGEST_PLACE)]

router = build_page_router()


@router.get("/votes")
def votes_page(request: Request, services: ServicesDep, holder: OperatorToken, made: _Number = None) -> Response:
    """Votes by reviewer and by choice, and a form that makes pairs; `made`: how many it has just made."""
    return _render_votes_page(request, services, {}, NOT_REFUSED, made)


@router.post("/votes")
def make_pairs_by_form(
    request: Request, services: ServicesDep, feedback: FeedbackDep, holder: OperatorToken, form: SentForm
) -> Response:
    """Make pairs, as POST /api/feedback/pairs."""
    limits = {"max_pairs": parse_number(typed)} if (typed := read_field(form, "max_pairs")) else {}
    values = {"family": read_field(form, "family"), "baselines": bool(form.get("baselines")), **limits}
    try:
        result = make_pairs(PairRequest.model_validate(values), holder, services, feedback)
    except ValidationError as invalid:
        refusal = Refusal(422, convert_faults(reasons(invalid, PairRequest)))
    except (Problem, DtefError) as error:
        refusal = build_refusal(request, error, _PAIRING_FIELDS)
    else:
        return redirect_to_page(f"/votes?made={result.pairs}")
    return _render_votes_page(request, services, form, refusal)


def _render_votes_page(
    request: Request, services: Services, form: TypedForm, refusal: Refusal, n_pairs: int | None = None
) -> Response:
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILIES

    families = [Choice(family.name, family.name) for family in FAMILIES if family.pair_source]
    limit, hint = form.get("max_pairs", ("100",)), "Number of pairs; empty: all possible pairs."
    baselines = Choice("yes", "Pair responses of baselines too")
    fields = [
        FormField("family", "Family", "choice", form.get("family", ()), choices=families),
        FormField("max_pairs", "At most", values=limit, hint=hint),
        FormField("baselines", "Baselines", "box", form.get("baselines", ()), choices=[baselines]),
    ]
    counts, known, salt = vote_counts(services.votes.database), services.votes.reviewers(), services.votes.salt.encode()
    reviewers = []
    for reviewer in counts.reviewers[:_REVIEWERS_SHOWN]:
        name, last = reviewer.reviewer_id, reviewer.last_at
        if reviewer.reviewer_kind != "judge" and not known.get(name, {}).get("consent"):
            message = f"pages {name}".encode("utf-8", "surrogatepass")
            name = f"reviewer-{hmac.new(salt, message, hashlib.sha256).hexdigest()[:12]}"
        shown = {"reviewer": name, "kind": reviewer.reviewer_kind, "votes": reviewer.n_votes}
        reviewers.append({**shown, "last": last and f"{last:%Y-%m-%d %H:%M:%S}"})
    values: dict[str, Any] = {"made": n_pairs, "counts": counts, "reviewers": reviewers, "fields": fields, "refusal": refusal}
    return page(request, "votes", "Votes", status=refusal.status, **values)


@router.get("/board")
def board_page(request: Request, services: ServicesDep, holder: OperatorToken, family: str | None = None) -> Response:
    """The board of one family; without a name, of the first family with votes."""
    # Pandas and DuckDB are loaded by who asks for the board, not by who starts the server.
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.preference.pairing import OTHER_TOOLS
    from dtef_pipeline.site.preference_page import PREFERENCE_READ, build_preference_sections
    from resources.warehouse import Warehouse

    warehouse, boards, versions = Warehouse(services.settings.warehouse), {}, []
    if warehouse.tables(["preference_scores"]):
        versions = warehouse.rows("preference_scores", columns=["votes_version"])["votes_version"].to_pylist()
        for name in (*(entry.name for entry in FAMILIES if entry.pair_source), OTHER_TOOLS):
            build = partial(build_preference_sections, family=name, metrics=(), family_title=family_title(name))
            if sections := warehouse.query(build, only=PREFERENCE_READ):
                boards[name] = sections
    choice = family if family in boards else next(iter(boards), None)
    changed = find_stale_reason(versions, compute_current_version(services.votes))
    return page(request, "board", "Preference board", boards=boards, family=choice, changed=changed)


@router.get("/actions")
def actions_page(request: Request, services: ServicesDep, holder: AdminToken, before: _Number = None) -> Response:
    """The log of actions, latest first."""
    rows = list_latest_actions(services.votes.database, _ACTIONS_A_PAGE, before)
    actions = [
        {
            "done_at": decode_time(row["done_at"]),
            "user": row["who"] or "–",
            "action": row["what"],
            "changes": list(changes(json.loads(row["before"]), json.loads(row["after"]))),
        }
        for row in rows
    ]
    older = f"/actions?before={rows[-1]['place']}" if len(rows) == _ACTIONS_A_PAGE else None
    return page(request, "actions", "Actions", actions=actions, older=older)


def changes(before: Mapping[str, Any], after: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values of the members that differ between two objects, including nested ones: `traits.risk`.

    None: there is no such member.
    """
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if any(isinstance(value, dict) and value for value in (old, new)):
            old, new = (value if isinstance(value, dict) else {} for value in (old, new))
            yield from changes(old, new, f"{above}{name}.")
        elif old != new:
            yield f"{above}{name}", old, new
