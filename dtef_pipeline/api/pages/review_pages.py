"""The page on which reviewers vote: one pair after the other, with hidden names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from dtef_pipeline.api.access import ReviewerToken
from dtef_pipeline.api.pages.forms import read_form_fields
from dtef_pipeline.api.pages.page_routes import build_page_router, page, redirect_to_page
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

    def submit_ballot(self, form: Mapping[str, str], skipped: tuple[str, ...]) -> Response:
        """Store the vote, and describe the result."""
        pair_id, confidence = form["pair_id"], form["confidence"]
        try:
            if not _PAIR_ID.fullmatch(pair_id):
                raise UnknownPair(_UNKNOWN_PAIR)
            pair = self.feedback.waiting.pair(pair_id)
            if not (form["choice"] and confidence):
                return self.pair_page(pair, form, skipped, _INCOMPLETE_VOTE, 422)
            number = int(confidence) if re.fullmatch(r"[0-9]{1,3}", confidence) else confidence
            ballot = read_ballot({**form, "confidence": number, "reviewer_id": self.holder.name})
            store_vote(ballot, self.holder, self.services, self.feedback)
        except UnknownPair:
            return self.next_page(skipped, _UNKNOWN_PAIR, 404)
        except DuplicateVote:
            return self.next_page(skipped, _FIRST_VOTE_STAYS, 409)
        except BallotError as error:
            faults = [f"{VOTE_FIELD_TITLES.get(field, field)}: {message}" for field, message in error.faults]
            return self.pair_page(pair, form, skipped, "; ".join(faults) or str(error), 422)
        except Problem as problem:
            wait = problem.headers.get("Retry-After")
            if problem.status != 429 or wait is None:
                raise
            message = f"You are voting too fast. Nothing is lost: vote again in {format_count(int(wait), 'second')}."
            response = self.pair_page(pair, form, skipped, message, problem.status)
            response.headers["Retry-After"] = wait
            return response
        return _redirect_to_review("voted", tuple(entry for entry in skipped if entry != pair_id))

    def next_page(self, skipped: tuple[str, ...], message: str, status: int = 200) -> Response:
        """Return the page of the next pair, or of none being left."""
        pair = self.feedback.waiting.choose_next(self.holder.name, later=skipped)
        if pair is None:
            return self.page(status, skipped, progress=self._load_progress(), message=f"{message} {ALL_DONE}".strip())
        if pair.pair_id in skipped:
            message = f"{message} You skipped this pair before.".strip()
        return self.pair_page(pair, read_form({"pair_id": pair.pair_id}), skipped, message, status)

    def pair_page(
        self, pair: BlindedPair, form: Mapping[str, str], skipped: tuple[str, ...], message: str, status: int
    ) -> Response:
        """Return the page of one pair with the reviewer's input."""
        return self.page(status, skipped, pair=pair, form=form, progress=self._load_progress(), message=message)

    def page(self, status: int, skipped: tuple[str, ...], **values: Any) -> Response:
        """Return the page. `pair` and `form`: the pair to vote on; `progress`: the reviewer's progress; `message`: the result of the previous
        vote."""
        return page(
            self.request,
            "review",
            VOTE_TITLE,
            status=status,
            scripts=("review.js",),
            **{"pair": None, "form": None, "progress": None, "message": "", **values},
            skipped=skipped,
            is_fault=status in _STAYS,
            consent=self.consent,
            choices=CHOICE_WORDS,
            confidences=CONFIDENCE_WORDS,
            titles=VOTE_FIELD_TITLES,
            longest=LONGEST_JUSTIFICATION,
        )

    def _load_progress(self) -> ReviewerProgress:
        return self.feedback.waiting.progress(self.holder.name)


def _open_review(request: Request, services: ServicesDep, feedback: FeedbackDep, holder: ReviewerToken) -> _Review:
    """Refuse the id of a judge, which is served nothing."""
    refuse_judge(services.votes.database, holder.name)
    return _Review(request, services, feedback, holder)


_ReviewDep = Annotated[_Review, Depends(_open_review)]
_SentForm = Annotated[dict[str, str], Depends(read_form_fields)]


@router.get(REVIEW_PATH)
def review_page(review: _ReviewDep, skipped: str = "", message: str = "") -> Response:
    """The next pair of the reviewer; if consent is missing, first the task and the consent form."""
    if review.consent is None:
        return review.page(200, read_skipped(skipped))
    return review.next_page(read_skipped(skipped), _MESSAGES.get(message, ""))


@router.post(f"{REVIEW_PATH}/consent")
def give_consent(review: _ReviewDep, fields: _SentForm) -> Response:
    """Store whether exports may show the id of the reviewer."""
    is_shown = fields.get("consent") == "yes"
    if review.consent is not is_shown:
        review.services.votes.record_consent(review.holder.name, consent=is_shown)
    return _redirect_to_review("shown" if is_shown else "hidden", read_skipped(fields.get("skipped", "")))


@router.post(REVIEW_PATH)
def vote_on_page(review: _ReviewDep, fields: _SentForm) -> Response:
    """Store a vote, or skip a pair. A vote that cannot be stored stays in the form."""
    form, skipped = read_form(fields), read_skipped(fields.get("skipped", ""))
    if fields.get("do") == "skip":
        return _redirect_to_review("skipped", add_skipped(skipped, form["pair_id"]))
    return review.submit_ballot(form, skipped)


def read_form(fields: Mapping[str, str]) -> dict[str, str]:
    """Read the parts of a ballot; browsers send line ends as two characters, of which one is kept."""
    form = {name: fields.get(name, "") for name in ("pair_id", "choice", "confidence", "justification")}
    return form | {"justification": form["justification"].replace("\r\n", "\n")}


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
