"""Votes of reviewers by day and by choice, and a form that makes pairs."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.problems import Problem, convert_faults, make_fault_problem
from dtef_pipeline.api.review.feedback_bodies import PairRequest
from dtef_pipeline.api.review.feedback_routes import LARGEST_PLACE, FeedbackDep, make_pairs
from dtef_pipeline.api.review.scores_response import compute_current_version, find_stale_reason
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.number_words import format_count
from resources.votes.vote_queries import VoteCounts, list_latest_actions, vote_counts
from resources.votes.vote_tables import decode_time

_REVIEWERS_SHOWN = 100
_PAIRING_FIELDS = ("family", "max_pairs", "baselines")
_ComputedPlace = Annotated[int | None, Query(ge=1, le=LARGEST_PLACE)]

router = build_page_router()


@router.get("/votes")
def votes_page(request: Request, services: ServicesDep, holder: OperatorToken, made: _ComputedPlace = None) -> Response:
    """Votes by day, by reviewer and by choice, and a form that makes pairs; `made`: how many it has just made."""
    return _render_votes_page(request, services, {}, NOT_REFUSED, made)


@router.post("/votes")
def make_pairs_by_form(
    request: Request, services: ServicesDep, feedback: FeedbackDep, holder: OperatorToken, form: SentForm
) -> Response:
    """Make pairs, as POST /api/feedback/pairs."""
    try:
        result = make_pairs(_parse_pairs_form(form), holder, services, feedback)
    except (Problem, DtefError) as error:
        return _render_votes_page(request, services, form, build_refusal(request, error, _PAIRING_FIELDS))
    return redirect_to_page(f"/votes?made={result.pairs}")


def _render_votes_page(
    request: Request, services: Services, form: TypedForm, refusal: Refusal, n_pairs: int | None = None
) -> Response:
    counts = vote_counts(services.votes.database)
    return page(
        request,
        "votes",
        "Votes",
        status=refusal.status,
        made=n_pairs,
        terms_of_votes=_describe_terms(counts),
        reviewers=_build_reviewer_rows(services, counts),
        n_reviewers=format_count(len(counts.reviewers), "reviewer"),
        by_day=[{"day": day.isoformat(), "votes": number} for day, number in sorted(counts.by_day.items(), reverse=True)],
        fields=_build_pairing_fields(form),
        refusal=refusal,
    )


def _parse_pairs_form(form: TypedForm) -> PairRequest:
    """Parse the form. Raises Problem."""
    limits = {"max_pairs": parse_number(typed)} if (typed := read_field(form, "max_pairs")) else {}
    values = {"family": read_field(form, "family"), "baselines": bool(form.get("baselines")), **limits}
    try:
        return PairRequest.model_validate(values)
    except ValidationError as error:
        raise make_fault_problem(convert_faults(reasons(error, PairRequest))) from None


def _build_pairing_fields(form: TypedForm) -> list[FormField]:
    """Build the fields that select stored responses."""
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILIES

    families = [Choice(family.name, family.name) for family in FAMILIES if family.pair_source]
    baselines = Choice("yes", "Pair responses of baselines too")
    return [
        FormField("family", "Family", "choice", form.get("family", ()), choices=families),
        FormField(
            "max_pairs", "At most", values=form.get("max_pairs", ("100",)), hint="Number of pairs; empty: all possible pairs."
        ),
        FormField("baselines", "Baselines", "box", form.get("baselines", ()), choices=[baselines]),
    ]


def _describe_terms(counts: VoteCounts) -> dict[str, str]:
    total = sum(counts.by_side.values())
    votes = [f"{counts.n_votes:,}"]
    votes += [f"{counts.n_voided:,} of them voided, which are included in the figures below"] if counts.n_voided else []
    votes += (
        [f"{counts.n_without_time:,} without a time (collected by another tool), which are not in the votes by day"]
        if counts.n_without_time
        else []
    )
    return {
        "Votes": "; ".join(votes),
        "Pairs": f"{counts.n_pairs:,}",
        "Reviewers": f"{len(counts.reviewers):,}",
        "Choices": "; ".join(f"{choice} {_format_share(n, counts.n_votes)}" for choice, n in counts.by_choice.items()),
        "Votes by side": "; ".join(f"{side} {_format_share(n, total)}" for side, n in counts.by_side.items()),
    }


def _format_share(number: int, total: int) -> str:
    return f"{number:,} ({number / total:.1%})" if total else "0"


def _build_reviewer_rows(services: Services, counts: VoteCounts) -> list[dict[str, Any]]:
    """Build the list of reviewers, most votes first; only those who consented are shown by name."""
    reviewers = services.votes.reviewers()
    return [
        {
            "reviewer": reviewer.reviewer_id
            if reviewer.reviewer_kind == "judge" or reviewers.get(reviewer.reviewer_id, {}).get("consent")
            else hash_reviewer(reviewer.reviewer_id, services.votes.salt),
            "kind": reviewer.reviewer_kind,
            "votes": reviewer.n_votes,
            "last": reviewer.last_at and f"{reviewer.last_at:%Y-%m-%d %H:%M:%S}",
        }
        for reviewer in counts.reviewers[:_REVIEWERS_SHOWN]
    ]


def hash_reviewer(reviewer_id: str, salt: str) -> str:
    """Return a pseudonym of a reviewer for these pages."""
    return f"reviewer-{hmac.new(salt.encode(), f'pages {reviewer_id}'.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()[:12]}"


if TYPE_CHECKING:
    from dtef_pipeline.site.content import Section
    from resources.warehouse import Warehouse


@router.get("/board")
def board_page(request: Request, services: ServicesDep, holder: OperatorToken, family: str | None = None) -> Response:
    """The board of one family; without a name, of the first family with votes."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    is_made = bool(warehouse.tables(["preference_scores"]))
    boards = _load_boards(warehouse) if is_made else {}
    rows = warehouse.rows("preference_scores", columns=["votes_version"]).to_pylist() if is_made else []
    choice = family if family in boards else next(iter(boards), None)
    return page(
        request,
        "board",
        "Preference board",
        families={name: family_title(name) for name in boards},
        family=choice,
        sections=boards[choice] if choice is not None else [],
        changed=find_stale_reason([row["votes_version"] for row in rows], compute_current_version(services.votes)),
    )


def _load_boards(warehouse: Warehouse) -> dict[str, list[Section]]:
    """Load the tables of the board by family, for families with votes."""
    # Pandas and DuckDB are loaded by who asks for the board, not by who starts the server.
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.preference.paired_source import OTHER_TOOLS
    from dtef_pipeline.site.content import Table
    from dtef_pipeline.site.preference_page import PREFERENCE_READ, build_preference_sections

    boards: dict[str, list[Section]] = {}
    for family in (*(entry.name for entry in FAMILIES if entry.pair_source), OTHER_TOOLS):
        build = partial(build_preference_sections, family=family, metrics=(), family_title=family_title(family))
        if sections := warehouse.query(build, only=PREFERENCE_READ):
            # The policy of these pages forbids evaluating charts; the report has them, and comparisons with metrics.
            boards[family] = [
                replace(one, blocks=[item for item in one.blocks if isinstance(item, Table) and item.rows]) for one in sections
            ]
    return boards


_ACTIONS_A_PAGE = 100
_Place = Annotated[int | None, Query(ge=0, le=LARGEST_PLACE)]


class ChangedMember(NamedTuple):
    """A member that an action changed."""

    name: str
    before: str | None
    """None: it did not exist."""
    after: str | None
    """None: it was removed."""


@router.get("/actions")
def actions_page(request: Request, services: ServicesDep, holder: AdminToken, before: _Place = None) -> Response:
    """The log of actions, latest first."""
    rows = list_latest_actions(services.votes.database, _ACTIONS_A_PAGE, before)
    actions = [
        {
            "done_at": decode_time(row["done_at"]),
            "user": row["who"] or "–",
            "action": row["what"],
            "changes": changes(json.loads(row["before"]), json.loads(row["after"])),
        }
        for row in rows
    ]
    older = f"/actions?before={rows[-1]['place']}" if len(rows) == _ACTIONS_A_PAGE else None
    return page(request, "actions", "Actions", actions=actions, older=older)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedMember]:
    """Return the members that differ between two objects, including nested ones: `traits.risk`."""
    old, new = _flatten_document(before), _flatten_document(after)
    return [ChangedMember(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)]


def _flatten_document(document: Mapping[str, Any], above: str = "") -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, dict) and value:
            texts |= _flatten_document(value, f"{above}{name}.")
        else:
            texts[f"{above}{name}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return texts
