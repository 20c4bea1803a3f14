"""Bodies of evaluations in responses: in a list, by themselves, and as events."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, make_optional
from dtef_pipeline.api.queue.evaluation_progress import EvaluationSteps, ProgressStatus
from resources.evaluations.evaluation_store import EventKind

Asks = Annotated[
    dict[str, Any],
    Field(
        description="What distinguishes the run from the others of its evaluation: for games `persona_id`, `scenario_id`, `persona` "
        "(with its version; empty: none) and the pinned `scenario_version`, `seeds` and `opponents`; for other families "
        "`partition`."
    ),
]


class CallCosts(AnswerBody):
    """Calls and their cost."""

    usd: float | None
    """Sum of the known costs; null: no cost is known."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    unpriced: int
    """Calls that are not in `usd`, because their cost, or that of another call of the same conversation, is unknown."""
    unpriced_usd_most: float | None = make_optional()
    """Largest possible cost of these calls in US dollars, in addition to `usd`; null: there are none, or no price is known."""


class RequestCounts(AnswerBody):
    """Requests to models by their outcome, each counted once."""

    n_requests: int
    """All requests: the sum of the other counts."""
    answered: int
    """Requests with a response, stored before or now."""
    failed: int
    skipped: int
    """Requests that were not sent because a budget was used up."""


class EvaluationRequests(RequestCounts):
    """Requests of a whole evaluation."""

    stages: dict[str, RequestCounts]
    """The same counts by stage."""


class EvaluationLinks(AnswerBody):
    """Paths."""

    self: str
    events: str
    """Path of the stream of events."""
    history: str
    """Path of the list of events."""


class EvaluationBody(AnswerBody):
    """The fields that every evaluation has."""

    queue_id: str
    family: FamilyName
    status: ProgressStatus
    waiting_before: int | None
    """Number of evaluations waiting before this one; null: it is no longer waiting."""
    submitted_by: str
    """The name of a token."""
    submitted_at: datetime
    started_at: datetime | None
    """null: not yet."""
    ended_at: datetime | None
    """null: not yet."""
    snapshot: str | None
    """Label of its rows."""
    last_event: int
    """Number of the last event."""
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""
    warning: str | None
    """At the end, the requests without a response, if others have one."""
    calls: EvaluationRequests | None
    """Null: no requests were made, or none have been reported yet."""
    call_costs: CallCosts | None
    """At the end, the cost of the calls made for it; responses stored before cost nothing. Null: it has not ended."""
    links: EvaluationLinks


class EvaluationSummary(EvaluationBody):
    """An evaluation in a list."""

    progress: EvaluationSteps | None
    """null: it has ended."""
    run_count: int


class EvaluationPage(AnswerBody):
    """Evaluations, newest first."""

    evaluations: list[EvaluationSummary]
    next: str | None
    """The `cursor` of the next page; null: this is the last."""


class QueuedRun(AnswerBody):
    """A run of an evaluation: in games a persona in a scenario, elsewhere a partition."""

    run_id: str
    key: str
    """The partition."""
    asks: Asks


class RunState(QueuedRun):
    """A run of an evaluation with its own state and results."""

    status: ProgressStatus
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""


class EvaluationDetails(EvaluationBody):
    """An evaluation with its runs."""

    cancelled_by: str | None
    """Who cancelled it; null: it was not cancelled."""
    manifest: dict[str, Any]
    """The manifest sent to `POST /api/evaluations`, with its defaults filled in."""
    restarts: int
    """Number of times that Dagster has restarted its run."""
    progress: EvaluationSteps
    runs: list[RunState]


class EventData(AnswerBody):
    """The members that the kinds of events have. A missing member does not belong to the kind, or is unknown."""

    family: FamilyName = make_optional()
    """queued: its family."""
    runs: int = make_optional()
    """queued: number of its runs."""
    dagster_run_id: str = make_optional()
    """started, restarted and the end: the Dagster run."""
    stage: str = make_optional()
    """item: the stage that reports."""
    key: str = make_optional()
    """item: the partition that the stage has finished."""
    status: Literal["done", "failed"] = make_optional()
    """item: how it finished the partition."""
    done: int = make_optional()
    """item: partitions that the stage has finished, including failed ones."""
    n_planned: int = make_optional()
    """item: all partitions of the stage, or its expected requests, which in games grow."""
    answered: int = make_optional()
    """item: answered requests of the stage so far."""
    skipped: int = make_optional()
    """item: requests of the stage that were not sent because a budget was used up."""
    failed: int | dict[str, str] = make_optional()
    """item: failed requests of the stage; at the end: the reason of each failed partition, by key."""
    calls: RequestCounts | EvaluationRequests = make_optional()
    """item: counts of all requests of the stage; at the end: those of the evaluation."""
    failure_reason: str = make_optional()
    """item: the most frequent reason, if some requests failed."""
    skip_reason: str = make_optional()
    """item: the budget that was used up, if some requests were not sent."""
    restarted: Literal[True] = make_optional()
    """item: Dagster has restarted the run."""
    reason: str = make_optional()
    """Why the partition, the earlier run or the evaluation failed, or why the evaluation was cancelled in Dagster."""
    call_costs: CallCosts = make_optional()
    """The end: cost of the calls made for it."""
    warning: str = make_optional()
    """The end: requests without a response."""
    by: str = make_optional()
    """cancelled: who cancelled it."""


class EventBody(AnswerBody):
    """An event of an evaluation. `item`: a step was completed; completed, failed or cancelled: the last event."""

    seq: int
    """Number, from 1 without gaps."""
    kind: EventKind
    data: EventData
    happened_at: datetime


class EventPage(AnswerBody):
    """Events in the order of their numbers."""

    events: list[EventBody]
    next: int
    """Value of `after` for the next request."""
