"""Votes of reviewers by day and by choice, and a form that makes pairs."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import ValidationError

from dtef_pipeline.api.access import Operating
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
from dtef_pipeline.api.review.feedback_bodies import PairsWanted
from dtef_pipeline.api.review.feedback_routes import LARGEST_PLACE, UsedForVotes, make_pairs
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.quantity_words import format_count
from resources.votes.vote_queries import VoteCounts, start_of_days, vote_counts

DAYS_OF_VOTES = 60
_REVIEWERS_SHOWN = 100
_PAIRING_FIELDS = ("family", "most", "baselines")
_Made = Annotated[int | None, Query(ge=1, le=LARGEST_PLACE)]

router = build_page_router()


@router.get("/votes")
def votes_page(request: Request, services: Used, held: Operating, made: _Made = None) -> Response:
    """Votes by day, by reviewer and by choice, and a form that makes pairs; `made`: how many it has just made."""
    return _render_votes_page(request, services, {}, NOT_REFUSED, made)


@router.post("/votes")
def make_pairs_by_form(request: Request, services: Used, feedback: UsedForVotes, held: Operating, form: SentForm) -> Response:
    """Make pairs, as POST /api/feedback/pairs."""
    try:
        result = make_pairs(_parse_pairs_form(form), held, services, feedback)
    except (Problem, DtefError) as error:
        return _render_votes_page(request, services, form, build_refusal(request, error, _PAIRING_FIELDS))
    return redirect_to_page(f"/votes?made={result.pairs}")


def _render_votes_page(
    request: Request, services: Services, form: TypedForm, refusal: Refusal, n_pairs: int | None = None
) -> Response:
    counts = vote_counts(services.votes.database)
    first = start_of_days(services.votes.clock(), DAYS_OF_VOTES).date()
    return page(
        request,
        "votes",
        "Votes",
        status=refusal.status,
        made=n_pairs,
        terms_of_votes=_describe_terms(counts),
        chart=_build_day_chart(counts.by_day, first),
        n_days=format_count(DAYS_OF_VOTES, "day"),
        reviewers=_build_reviewer_rows(services, counts),
        n_reviewers=format_count(len(counts.reviewers), "reviewer"),
        by_day=[{"day": day.isoformat(), "votes": number} for day, number in sorted(counts.by_day.items(), reverse=True)],
        fields=_build_pairing_fields(form),
        refusal=refusal,
    )


def _parse_pairs_form(form: TypedForm) -> PairsWanted:
    """Parse the form. Raises Problem."""
    most = {"most": parse_number(typed)} if (typed := read_field(form, "most")) else {}
    values = {"family": read_field(form, "family"), "baselines": bool(form.get("baselines")), **most}
    try:
        return PairsWanted.model_validate(values)
    except ValidationError as error:
        raise make_fault_problem(convert_faults(reasons(error, PairsWanted))) from None


def _build_pairing_fields(form: TypedForm) -> list[FormField]:
    """Build the fields that select stored responses."""
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILIES

    families = [Choice(family.name, family.name) for family in FAMILIES if family.pair_source]
    baselines = Choice("yes", "Pair responses of baselines too")
    return [
        FormField("family", "Family", "choice", form.get("family", ()), choices=families),
        FormField("most", "At most", values=form.get("most", ("100",)), hint="Number of pairs; empty: all possible pairs."),
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


def _format_share(number: int, of: int) -> str:
    return f"{number:,} ({number / of:.1%})" if of else "0"


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


def _build_day_chart(by_day: Mapping[date, int], first: date) -> dict[str, Any] | None:
    """Build the chart of votes on each of the last days; None: there are none."""
    days = {day: by_day.get(day, 0) for day in (first + timedelta(days=n) for n in range(DAYS_OF_VOTES))}
    if not (total := sum(days.values())):
        return None
    most = max(days.values())
    caption = f"the last {format_count(DAYS_OF_VOTES, 'day')}: {format_count(total, 'vote')}, at most {most:,} per day"
    return {"caption": f"Votes per day (UTC), {caption}", "days": list(days.items()), "most": most}
