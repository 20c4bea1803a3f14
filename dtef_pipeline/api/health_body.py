"""What the health of the service looks like in answers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from dtef_pipeline.api.answer_schemas import AnswerBody


class HealthOfDatabase(AnswerBody):
    """The database of the response store."""

    answers: bool
    bytes: int | None
    """Its size; null: not known."""


class FailedLately(AnswerBody):
    """An evaluation that failed in the last days."""

    queue_id: str
    failed_at: datetime
    reason: str | None


class HealthOfEvaluations(AnswerBody):
    """Evaluations, as far as the database answers."""

    open: int | None
    """Those that wait or run; null: not known."""
    last_event_at: datetime | None
    """null: nothing has happened yet, or it is not known."""
    failures: list[FailedLately]
    """The last first."""


class HealthOfDaemon(AnswerBody):
    """Dagster's daemon, which takes evaluations up."""

    running: bool
    last_heartbeat_at: datetime | None
    """null: never heard of."""
    sensor_on: bool
    """Whether the sensor that starts queued evaluations is switched on."""
    last_tick_at: datetime | None
    """When that sensor last looked for some; null: it never did, or it is not known."""


class HealthOfVotes(AnswerBody):
    """Votes of the last days."""

    days: int
    number: int | None
    """null: not known."""


class HealthBody(AnswerBody):
    """Whether the service does its work."""

    status: Literal["ok", "degraded"]
    """degraded: see `problems`."""
    at: datetime
    """When it was looked at."""
    problems: list[str]
    """What is to be mended, in words."""
    database: HealthOfDatabase
    evaluations: HealthOfEvaluations
    daemon: HealthOfDaemon
    votes: HealthOfVotes
