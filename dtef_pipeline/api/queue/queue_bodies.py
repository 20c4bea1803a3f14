"""What evaluations look like in answers: in a list, alone, and as events."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, make_optional
from dtef_pipeline.api.queue.evaluation_progress import EvaluationSteps, ProgressStatus

Asks = Annotated[
    dict[str, Any],
    Field(
        description="What tells the run from the others of its evaluation: of games `persona_id`, `scenario_id`, `persona` (with its version; "
        "empty: none) and what is pinned, `scenario_version`, `seeds` and `opponents`; of other families `partition`."
    ),
]


class SpentOnCalls(AnswerBody):
    """Calls and their cost."""

    usd: float | None
    """Sum of the known costs; null: no call has a known one."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    unpriced: int
    """Calls that are not in `usd`: the cost of one of them, or of another call of the same conversation, is not known."""
    unpriced_usd_most: float | None = make_optional()
    """US dollars that these may have cost at most, beyond `usd`; null: there are none, or no price is known."""


class RequestCounts(AnswerBody):
    """Requests to models by what became of them, each counted once."""

    asked: int
    """All that were to be asked: the sum of the others."""
    answered: int
    """With a response, stored before or now."""
    failed: int
    skipped: int
    """Not sent, because a budget ended."""


class EvaluationRequests(RequestCounts):
    """Requests of a whole evaluation."""

    stages: dict[str, RequestCounts]
    """The same by stage."""


class EvaluationLinks(AnswerBody):
    """Paths."""

    self: str
    events: str
    """Of the stream of events."""
    history: str
    """Of the events as a list."""


class EvaluationBody(AnswerBody):
    """The fields that every evaluation has."""

    queue_id: str
    family: FamilyName
    status: ProgressStatus
    waiting_before: int | None
    """Evaluations that wait before this one; null: it waits no more."""
    submitted_by: str
    """The name of a token."""
    submitted_at: datetime
    started_at: datetime | None
    """null: not yet."""
    ended_at: datetime | None
    """null: not yet."""
    snapshot: str | None
    """The label that its rows have."""
    last_event: int
    """Number of the last event."""
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""
    warning: str | None
    """At the end, which requests were not answered though others were."""
    calls: EvaluationRequests | None
    """null: no requests were made, or none are reported yet."""
    bought: SpentOnCalls | None
    """At the end, the cost of the calls that were made for it; responses stored before cost nothing again. null: it has not ended."""
    links: EvaluationLinks


class ListedEvaluation(EvaluationBody):
    """An evaluation in a list."""

    progress: EvaluationSteps | None
    """null: it has ended."""
    run_count: int


class PageOfEvaluations(AnswerBody):
    """Evaluations, the newest first."""

    evaluations: list[ListedEvaluation]
    next: str | None
    """The `cursor` of what follows; null: nothing does."""


class QueuedRun(AnswerBody):
    """A run of an evaluation: in games a persona in a scenario, elsewhere a partition."""

    run_id: str
    key: str
    """The partition."""
    asks: Asks


class RunOfEvaluation(QueuedRun):
    """A part of an evaluation with a state and results of its own."""

    status: ProgressStatus
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""


class WholeEvaluation(EvaluationBody):
    """An evaluation with its runs."""

    cancel_asked_by: str | None
    """Who asked for its end; null: nobody."""
    manifest: dict[str, Any]
    """As it was sent to `POST /api/evaluations`, with its defaults spelled out."""
    restarts: int
    """How often Dagster has started its run once more."""
    progress: EvaluationSteps
    runs: list[RunOfEvaluation]


class ItemOfPartition(AnswerBody):
    """A stage is done with a partition."""

    stage: str
    key: str
    """The partition."""
    done: int
    """Partitions that the stage is done with, failed ones too."""
    of: int
    status: Literal["done", "failed"]
    reason: str = make_optional()
    """Where it failed."""


class ItemOfAnswers(AnswerBody):
    """How many requests of a stage are answered so far."""

    stage: str
    answered: int
    failed: int
    skipped: int
    of: int
    """Those that are expected; in games they grow."""


class ItemOfRequests(AnswerBody):
    """What became of all requests of a stage so far."""

    stage: str
    calls: RequestCounts
    why_failed: str = make_optional()
    """The most frequent reason, where some failed."""
    why_skipped: str = make_optional()
    """The budget that ended, where some were not sent."""


class ItemOfRestart(AnswerBody):
    """Dagster has started the run once more."""

    restarted: Literal[True]
    dagster_run_id: str
    reason: str
    """Why the run before ended."""


class DataOfQueued(AnswerBody):
    """What was asked for."""

    family: FamilyName
    runs: int
    """How many."""


class DataOfStarted(AnswerBody):
    """Which run of Dagster has begun."""

    dagster_run_id: str


class DataOfEnd(AnswerBody):
    """What an evaluation came to. A member that is not there was not known."""

    dagster_run_id: str = make_optional()
    calls: EvaluationRequests = make_optional()
    """Where models were asked."""
    bought: SpentOnCalls = make_optional()
    """What the calls cost that were made for it."""
    warning: str = make_optional()
    """Which requests were not answered."""
    reason: str = make_optional()
    """Why it failed, or was cancelled in Dagster."""
    failed: dict[str, str] = make_optional()
    """Why each partition failed that did, by key."""
    by: str = make_optional()
    """Who asked for its end, where it was cancelled."""


class _EventBody(AnswerBody):
    seq: int
    """Counts from 1 without gaps."""
    happened_at: datetime


class QueuedEvent(_EventBody):
    """The evaluation is stored."""

    kind: Literal["queued"]
    data: DataOfQueued


class StartedEvent(_EventBody):
    """Dagster's run has begun."""

    kind: Literal["started"]
    data: DataOfStarted


class ItemEvent(_EventBody):
    """Something was done."""

    kind: Literal["item"]
    data: ItemOfPartition | ItemOfAnswers | ItemOfRequests | ItemOfRestart


class LastEvent(_EventBody):
    """The end: nothing follows."""

    kind: Literal["completed", "failed", "cancelled"]
    data: DataOfEnd


class PageOfEvents(AnswerBody):
    """Events in the order of their numbers."""

    events: list[QueuedEvent | StartedEvent | ItemEvent | LastEvent]
    next: int
    """What to give as `after` the next time."""
