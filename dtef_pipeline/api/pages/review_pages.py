"""The page on which reviewers vote: one pair after the other, with hidden names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request, Response

from dtef_pipeline.api.access import ReviewerToken
from dtef_pipeline.api.pages.forms import read_form_fields
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.review.feedback_routes import Feedback, FeedbackDep, store_vote
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.api.tokens import TokenHolder
from dtef_pipeline.errors import BallotError, DuplicateVote, UnknownPair
from dtef_pipeline.preference.pairing import BlindedPair
from dtef_pipeline.preference.votes import (
    CHOICE_WORDS,
    CONFIDENCE_WORDS,
    LONGEST_JUSTIFICATION,
    VOTE_FIELD_TITLES,
    VOTE_TITLE,
    read_ballot,
)
from dtef_pipeline.text.number_words import format_count
from resources.votes.pair_queue import ReviewerProgress
from resources.votes.vote_queries import refuse_judge

REVIEW_PATH = "/review"
CONSENT_PATH = "/review/consent"
ALL_DONE = "You have voted on all pairs. Thank you."
MAX_SKIPPED = 100
"""Largest number of skipped pairs; beyond it, the pair that was skipped first is shown next."""
_STAYS = (422, 429)
"""Errors after which the same pair is shown again, with the reviewer's input."""
_PAIR_ID = re.compile(r"[0-9a-f]{32}")
_MESSAGES = {
    "voted": "Your vote is stored.",
    "skipped": "You will see this pair again later.",
    "shown": "Saved: exports may show your id.",
    "hidden": "Saved: exports do not show your id.",
}
"""Messages by the word in the address after a form."""
_INCOMPLETE_VOTE = "Choose A, B or tie, and how certain you are."
_FIRST_VOTE_STAYS = "You have already voted on that pair; your first vote counts."
_UNKNOWN_PAIR = "That pair does not exist, so nothing was stored. Here is another one."

router = build_page_router()
SentForm = Annotated[dict[str, str], Depends(read_form_fields)]


class VoteForm(NamedTuple):
    """A reviewer's input, as texts of a form."""

    pair_id: str = ""
    choice: str = ""
    confidence: str = ""
    justification: str = ""
    skipped: tuple[str, ...] = ()
    """Ids of skipped pairs, in the order in which they were skipped."""


@router.get(REVIEW_PATH)
def review_page(
    request: Request, services: ServicesDep, feedback: FeedbackDep, holder: ReviewerToken, skipped: str = "", message: str = ""
) -> Response:
    """The next pair of the reviewer; if consent is missing, first the task and the consent form."""
    refuse_judge(services.votes.database, holder.name)
    review = _Review(request, services, feedback, holder)
    if review.consent is None:
        return review.page(200, skipped=read_skipped(skipped))
    return review.next_page(read_skipped(skipped), _MESSAGES.get(message, ""))


@router.post(CONSENT_PATH)
def give_consent(
    request: Request, services: ServicesDep, feedback: FeedbackDep, holder: ReviewerToken, fields: SentForm
) -> Response:
    """Store whether exports may show the id of the reviewer."""
    refuse_judge(services.votes.database, holder.name)
    is_shown = fields.get("consent") == "yes"
    if _Review(request, services, feedback, holder).consent is not is_shown:
        services.votes.record_consent(holder.name, consent=is_shown)
    return _redirect_to_review("shown" if is_shown else "hidden", read_skipped(fields.get("skipped", "")))


@router.post(REVIEW_PATH)
def vote_on_page(
    request: Request, services: ServicesDep, feedback: FeedbackDep, holder: ReviewerToken, fields: SentForm
) -> Response:
    """Store a vote, or skip a pair. A vote that cannot be stored stays in the form."""
    form = read_form(fields)
    if fields.get("do") == "skip":
        return _redirect_to_review("skipped", add_skipped(form.skipped, form.pair_id))
    return _Review(request, services, feedback, holder).submit_ballot(form)


@dataclass(frozen=True)
class _Review:
    """A request of a reviewer, with the services it needs."""

    request: Request
    services: Services
    feedback: Feedback
    holder: TokenHolder

    @cached_property
    def consent(self) -> bool | None:
        """The reviewer's consent, read once; None: not given yet."""
        reviewer = self.services.votes.reviewer(self.holder.name)
        return None if reviewer is None else bool(reviewer["consent"])

    def submit_ballot(self, form: VoteForm) -> Response:
        """Store the vote, and describe the result."""
        try:
            pair = self._pair(form.pair_id)
            if not (form.choice and form.confidence):
                return self.pair_page(pair, form, _INCOMPLETE_VOTE, 422)
            certain = int(form.confidence) if re.fullmatch(r"[0-9]{1,3}", form.confidence) else form.confidence
            ballot = {"pair_id": form.pair_id, "reviewer_id": self.holder.name, "choice": form.choice, "confidence": certain}
            values = ballot | {"justification": form.justification}
            store_vote(read_ballot(values), self.holder, self.services, self.feedback)
        except UnknownPair:
            return self.next_page(form.skipped, _UNKNOWN_PAIR, 404)
        except DuplicateVote:
            return self.next_page(form.skipped, _FIRST_VOTE_STAYS, 409)
        except BallotError as error:
            faults = [f"{VOTE_FIELD_TITLES.get(field, field)}: {message}" for field, message in error.faults]
            return self.pair_page(pair, form, "; ".join(faults) or str(error), 422)
        except Problem as problem:
            return self._show_refusal(pair, form, problem)
        return _redirect_to_review("voted", tuple(pair_id for pair_id in form.skipped if pair_id != form.pair_id))

    def next_page(self, skipped_ids: tuple[str, ...], message: str, status: int = 200) -> Response:
        """Return the page of the next pair, or of none being left."""
        pair = self.feedback.waiting.choose_next(self.holder.name, later=skipped_ids)
        if pair is None:
            return self.page(
                status, skipped=skipped_ids, progress=self._load_progress(), message=f"{message} {ALL_DONE}".strip()
            )
        if pair.pair_id in skipped_ids:
            message = f"{message} You skipped this pair before.".strip()
        return self.pair_page(pair, VoteForm(pair.pair_id, skipped=skipped_ids), message, status)

    def pair_page(self, pair: BlindedPair, form: VoteForm, message: str, status: int) -> Response:
        """Return the page of one pair with the reviewer's input."""
        return self.page(status, pair=pair, form=form, skipped=form.skipped, progress=self._load_progress(), message=message)

    def page(self, status: int, **values: Any) -> Response:
        """Return the page. `pair` and `form`: the pair to vote on; `progress`: the reviewer's progress; `message`: the result of the previous
        vote."""
        return page(
            self.request,
            "review",
            VOTE_TITLE,
            status=status,
            scripts=("review.js",),
            **{"pair": None, "form": None, "progress": None, "message": "", **values},
            is_fault=status in _STAYS,
            consent=self.consent,
            choices=CHOICE_WORDS,
            confidences=CONFIDENCE_WORDS,
            titles=VOTE_FIELD_TITLES,
            longest=LONGEST_JUSTIFICATION,
        )

    def _load_progress(self) -> ReviewerProgress:
        return self.feedback.waiting.progress(self.holder.name)

    def _pair(self, pair_id: str) -> BlindedPair:
        """Load a pair. Raises UnknownPair, also for an invalid id."""
        if not _PAIR_ID.fullmatch(pair_id):
            raise UnknownPair(_UNKNOWN_PAIR)
        return self.feedback.waiting.pair(pair_id)

    def _show_refusal(self, pair: BlindedPair, form: VoteForm, problem: Problem) -> Response:
        wait = problem.headers.get("Retry-After")
        if problem.status != 429 or wait is None:
            raise problem
        message = f"You are voting too fast. Nothing is lost: vote again in {format_count(int(wait), 'second')}."
        response = self.pair_page(pair, form, message, problem.status)
        response.headers["Retry-After"] = wait
        return response


def read_form(fields: Mapping[str, str]) -> VoteForm:
    """Read the form; browsers send line ends as two characters, of which one is kept."""
    return VoteForm(
        fields.get("pair_id", ""),
        fields.get("choice", ""),
        fields.get("confidence", ""),
        fields.get("justification", "").replace("\r\n", "\n"),
        read_skipped(fields.get("skipped", "")),
    )


def read_skipped(words: str) -> tuple[str, ...]:
    """Read ids separated by dots, each once; invalid ids are left out."""
    ids = (pair_id for pair_id in words[-33 * MAX_SKIPPED :].split(".") if _PAIR_ID.fullmatch(pair_id))
    return tuple(dict.fromkeys(ids))[-MAX_SKIPPED:]


def add_skipped(skipped_ids: tuple[str, ...], pair_id: str) -> tuple[str, ...]:
    """Add the pair after all other skipped ones."""
    return read_skipped(".".join((*(entry for entry in skipped_ids if entry != pair_id), pair_id)))


def _redirect_to_review(message: str, skipped_ids: tuple[str, ...]) -> Response:
    later = f"&skipped={'.'.join(skipped_ids)}" if skipped_ids else ""
    return redirect_to_page(f"{REVIEW_PATH}?message={message}{later}")
