"""The votes of reviewers by day and by choice, and what administrators and operators did."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import ValidationError

from dtef_pipeline.api.access import Administering, Operating
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.form_parts import (
    NOT_REFUSED,
    Refusal,
    SentForm,
    TypedForm,
    choices_field,
    faults_above,
    number_typed,
    one_of,
    refusal_of,
    select_field,
    text_field,
)
from dtef_pipeline.api.pages.layout import page, page_router, to_page
from dtef_pipeline.api.pages.page_parts import box_of_table, folded, listed, long_text, moment, row_of
from dtef_pipeline.api.problems import Problem, body_faults, faulty
from dtef_pipeline.api.review.feedback_bodies import PairsWanted
from dtef_pipeline.api.review.feedback_routes import make_pairs
from dtef_pipeline.api.review.feedback_services import UsedForVotes
from dtef_pipeline.api.review.feedback_sync import LARGEST_PLACE
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.counted import counted
from resources.votes.vote_queries import VoteCounts, latest_actions, start_of_days, vote_counts
from resources.votes.vote_tables import time_of

DAYS_OF_VOTES = 60
_REVIEWERS_SHOWN = 100
_ACTIONS_A_PAGE = 100
_CHART_WIDTH, _CHART_HEIGHT, _CHART_HEAD, _CHART_FOOT = 760, 170, 32, 32
"""Room above and below the bars holds words of 22 units, as narrow screens have them."""

router = page_router()
_PAIRING_FIELDS = ("family", "most", "baselines")
_Made = Annotated[int | None, Query(ge=1, le=LARGEST_PLACE)]
_Place = Annotated[int | None, Query(ge=0, le=LARGEST_PLACE)]


@router.get("/votes")
def votes_page(request: Request, services: Used, held: Operating, made: _Made = None) -> Response:
    """Votes by day, by reviewer and by choice, and a form that makes pairs; `made`: how many it has just made."""
    return _votes_page(request, services, {}, NOT_REFUSED, made)


@router.post("/votes")
def make_pairs_by_form(request: Request, services: Used, feedback: UsedForVotes, held: Operating, form: SentForm) -> Response:
    """Makes pairs, as POST /api/feedback/pairs does."""
    try:
        done = make_pairs(_pairs_wanted(form), held, services, feedback)
    except (Problem, DtefError) as error:
        return _votes_page(request, services, form, refusal_of(request, error, _PAIRING_FIELDS))
    return to_page(f"/votes?made={done.pairs}")


def _votes_page(request: Request, services: Services, form: TypedForm, refusal: Refusal, made: int | None = None) -> Response:
    found = vote_counts(services.votes.database)
    body = (
        _pairs_made(made),
        _all_votes(found),
        _last_days(found, start_of_days(services.votes.clock(), DAYS_OF_VOTES).date()),
        _reviewers(services, found),
        _days_with_votes(found),
        _pairing_form(form, refusal),
    )
    return page(request, "Votes", *body, status=refusal.status)


def _last_days(found: VoteCounts, first: date) -> Html:
    """A chart of the days from `first` on, or that they have no votes."""
    days = {day: found.by_day.get(day, 0) for day in (first + timedelta(days=n) for n in range(DAYS_OF_VOTES))}
    if not any(days.values()):
        return element("p", f"No votes in the last {counted(DAYS_OF_VOTES, 'day')}.", class_="how")
    caption = f"Votes a day (UTC), {days_in_words(days)}"
    return element("figure", _bars_of_days(days, caption), element("figcaption", caption), class_="days")


def _days_with_votes(found: VoteCounts) -> Content:
    """A table of all days that have votes; nothing where there is no such day."""
    if not found.by_day:
        return None
    rows = [row_of(day.isoformat(), number) for day, number in sorted(found.by_day.items(), reverse=True)]
    caption = f"{counted(len(rows), 'day')} (UTC) with votes, the last first"
    return folded("Votes by day", box_of_table(caption, ("Day", "Votes"), rows, numbers=("Votes",)))


def _pairs_wanted(form: TypedForm) -> PairsWanted:
    """What the form stands for. Raises Problem."""
    most = {"most": number_typed(said)} if (said := one_of(form, "most")) else {}
    values = {"family": one_of(form, "family"), "baselines": bool(form.get("baselines")), **most}
    try:
        return PairsWanted.model_validate(values)
    except ValidationError as error:
        raise faulty(body_faults(reasons(error, PairsWanted))) from None


def _pairs_made(number: int | None) -> Content:
    if number is None:
        return None
    words = (f"Made {counted(number, 'pair')}. Reviewers vote on the page ", link("/review", "Review"), ".")
    return element("p", *words, role="status")


def _pairing_form(form: TypedForm, refusal: Refusal) -> Html:
    """Which stored responses are paired."""
    # The families bring pandas, which the API starts without.
    from dtef_pipeline.families import FAMILIES

    families = [one.name for one in FAMILIES if one.paired]
    controls = element(
        "form",
        element(
            "p",
            "Responses of two different models or players to the same item make a pair, where their texts differ. Reviewers vote on pairs.",
            class_="how",
        ),
        faults_above(refusal, _PAIRING_FIELDS),
        select_field("family", "Family", families, one_of(form, "family"), refusal),
        text_field(
            "most", "At most", one_of(form, "most") if form else "100", refusal, "How many pairs; empty: all there can be."
        ),
        choices_field(
            "baselines", "Baselines", {"yes": "pair the answers of baselines too"}, form.get("baselines", ()), refusal
        ),
        element("button", "Make pairs", type="submit", class_="main"),
        method="post",
        action="/votes",
    )
    return html(element("h2", "Make pairs"), controls)


@router.get("/actions")
def actions_page(request: Request, services: Used, held: Administering, before: _Place = None) -> Response:
    """The log of actions."""
    found = latest_actions(services.votes.database, _ACTIONS_A_PAGE, before)
    rows = [
        row_of(
            moment(time_of(row["done_at"])), row["who"] or "–", row["what"], _document(row["before"]), _document(row["after"])
        )
        for row in found
    ]
    headings = ("At", "Who", "What", "Before", "After")
    body = box_of_table("Actions, the last first; times are UTC", headings, rows, nothing="Nobody did anything yet.")
    older = (
        element("p", link(f"/actions?before={found[-1]['place']}", "Earlier actions"))
        if len(found) == _ACTIONS_A_PAGE
        else None
    )
    return page(request, "Actions", body, older)


def _all_votes(found: VoteCounts) -> Html:
    decided = sum(found.by_side.values())
    told = [f"{found.n_votes:,}"]
    told += [f"{found.n_voided:,} of them voided, which the figures below count too"] if found.n_voided else []
    told += (
        [f"{found.n_without_time:,} without a time, as another tool took them: no day counts these"]
        if found.n_without_time
        else []
    )
    return listed(
        {
            "Votes": "; ".join(told),
            "Pairs": f"{found.n_pairs:,}",
            "Reviewers": f"{len(found.reviewers):,}",
            "Choices": "; ".join(f"{choice} {_share(n, found.n_votes)}" for choice, n in found.by_choice.items()),
            "For the side": "; ".join(f"{side} {_share(n, decided)}" for side, n in found.by_side.items()),
        }
    )


def _share(number: int, of: int) -> str:
    return f"{number:,} ({number / of:.1%})" if of else "0"


def _reviewers(services: Services, found: VoteCounts) -> Html:
    """Who has voted: under the own name only who agreed to that."""
    said = services.votes.reviewers()
    rows = [
        row_of(
            one.reviewer_id
            if one.reviewer_kind == "judge" or said.get(one.reviewer_id, {}).get("consent")
            else opaque(one.reviewer_id, services.votes.salt),
            one.reviewer_kind,
            one.n_votes,
            moment(one.last_at),
        )
        for one in found.reviewers[:_REVIEWERS_SHOWN]
    ]
    caption = f"{counted(len(found.reviewers), 'reviewer')}, those with the most votes first; ids are hidden unless their owners agreed"
    return box_of_table(
        caption, ("Reviewer", "Kind", "Votes", "Last vote (UTC)"), rows, numbers=("Votes",), nothing="Nobody voted yet."
    )


def opaque(reviewer_id: str, salt: str) -> str:
    """A name by which a reviewer is known on these pages, and from which nobody learns whose it is."""
    return f"reviewer-{hmac.new(salt.encode(), f'pages {reviewer_id}'.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()[:12]}"


def days_in_words(days: Mapping[date, int]) -> str:
    total = sum(days.values())
    return f"the last {counted(len(days), 'day')}: {counted(total, 'vote')}, at most {max(days.values(), default=0):,} a day"


def _bars_of_days(days: Mapping[date, int], caption: str) -> Html:
    """Bars of one day each; the axis names the first and the last day and the greatest number."""
    most = max(max(days.values(), default=0), 1)
    wide = _CHART_WIDTH / len(days)
    bottom = _CHART_HEIGHT - _CHART_FOOT
    bars = []
    for at, (day, number) in enumerate(days.items()):
        high = (bottom - _CHART_HEAD) * number / most
        title = element("title", f"{day.isoformat()}: {counted(number, 'vote')}")
        place = {
            "x": round(at * wide + 1, 1),
            "y": round(bottom - high, 1),
            "width": round(wide - 2, 1),
            "height": round(high, 1),
        }
        bars.append(element("rect", title, **place, class_="bar"))
    axis = element("line", x1=0, y1=bottom, x2=_CHART_WIDTH, y2=bottom, class_="axis")
    first, last = min(days).isoformat(), max(days).isoformat()
    words = [
        element("text", first, x=0, y=_CHART_HEIGHT - 6, class_="soft"),
        element("text", last, x=_CHART_WIDTH, y=_CHART_HEIGHT - 6, class_="soft", text_anchor="end"),
        element("text", f"{most:,}", x=0, y=_CHART_HEAD - 8, class_="soft"),
    ]
    size = f"0 0 {_CHART_WIDTH} {_CHART_HEIGHT}"
    return element("svg", html(axis, bars, words), viewBox=size, width="100%", role="img", aria_label=caption)


def _document(kept: str) -> Html:
    """A JSON object of the log, in brief; whole when opened."""
    said = json.loads(kept)
    return element("code", long_text(json.dumps(said, ensure_ascii=False, sort_keys=True))) if said else html("–")
