"""Health of the service: the database, Dagster's daemon, and recent failures."""

from __future__ import annotations

import asyncio
import logging
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, convert_to_json
from dtef_pipeline.api.documents.document_history import PERSONAS, SCENARIOS, KnownDocuments
from dtef_pipeline.api.pages.evaluation_text import subject_words
from dtef_pipeline.api.pages.page_routes import build_page_router, page
from dtef_pipeline.api.queue.evaluation_progress import load_evaluation_views
from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_store import QUEUE_SENSOR, count_unended, last_event_at
from resources.failures import is_damaged

if TYPE_CHECKING:
    from assets.daemon_state import DaemonState


_log = logging.getLogger(__name__)
_LOW_ON_DISK = 100 * 2**20
"""Free bytes below which the disk counts as almost full."""
FAILURES_OF_DAYS = 7
_MAX_FAILURES = 100
_DAEMON_KEPT_S = 10.0
_DAEMON_WITHIN_S = 3
_DAEMON_KNOWN_S = 60.0
"""Maximum age of the daemon's state on a page that does not wait for a new check."""
_FIRST_LOOK_WITHIN_S = 20
"""Seconds to wait until Dagster is imported, which is slow on a busy machine."""
DAMAGED_STORE = (
    "the response store is damaged: stop the service and replace the file with a backup; `dtef doctor` names the file"
)
NO_DAEMON = "Dagster's daemon is not running, so evaluations wait; start `dtef ui`"
NO_SENSOR = f"the sensor {QUEUE_SENSOR} is switched off, so evaluations wait; switch it on in Dagster's UI"
_LOOK_AT_TICKS = f"see the ticks of {QUEUE_SENSOR} and Deployment in Dagster's UI, or run `dtef doctor`"


class DatabaseHealth(AnswerBody):
    """The database of the response store."""

    answers: bool
    bytes: int | None = None
    """Its size; null: unknown."""


class RecentFailure(AnswerBody):
    """An evaluation that failed in the last days."""

    queue_id: str
    family: FamilyName
    subject: str
    """Scenarios or partitions of the evaluation."""
    failed_at: datetime
    reason: str | None


class EvaluationHealth(AnswerBody):
    """Evaluations, if the database answers."""

    open: int | None = None
    """Number of evaluations that wait or run; null: unknown."""
    last_event_at: datetime | None = None
    """Null: nothing has happened yet, or it is unknown."""
    failures: list[RecentFailure] = []
    """Latest first."""


class DaemonHealth(AnswerBody):
    """Dagster's daemon, which starts evaluations."""

    running: bool
    last_heartbeat_at: datetime | None
    """Null: never."""
    sensor_on: bool
    """Whether the sensor that starts queued evaluations is switched on."""
    last_tick_at: datetime | None
    """Time of the sensor's last tick; null: never, or unknown."""


class HealthBody(AnswerBody):
    """Health of the service."""

    status: Literal["ok", "degraded"]
    """degraded: see `problems`."""
    checked_at: datetime
    """Time of the check."""
    problems: list[str]
    """Problems to fix, in words."""
    database: DatabaseHealth
    evaluations: EvaluationHealth
    daemon: DaemonHealth


class HealthMonitor:
    """Checks the health of the service in its own threads, because those of the routes may all wait for the database."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._at_database = ThreadPoolExecutor(1, "health of the database")
        self._at_daemon = ThreadPoolExecutor(1, "health of the daemon")
        self._under_way: asyncio.Task[HealthBody] | None = None
        self._glance: Future[DaemonState] | None = None
        self._seen: tuple[datetime, DaemonState] | None = None
        """The daemon's latest state, and when it was read."""
        self._is_first = True

    async def check(self) -> HealthBody:
        """Return the present health. Concurrent requests share one check."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._check_health(), name="health")
        return await asyncio.shield(self._under_way)

    def find_start_problem(self) -> str | None:
        """Say why no queued evaluation starts, as far as known; None: nothing prevents it, or it is unknown.

        Does not wait. The daemon is checked in the background for the next call.
        """
        now = self._services.evaluations.clock()
        seen = self._seen
        if self._glance is None or self._glance.done():
            self._glance = self._at_daemon.submit(self._read_daemon, now)
        if seen is None or abs((now - seen[0]).total_seconds()) > _DAEMON_KNOWN_S:
            return None
        return next(iter(_find_daemon_problems(seen[1], now, 0)), None)

    def _read_daemon(self, now: datetime) -> DaemonState:
        """Read the daemon's state, at most every few seconds, because opening Dagster's home takes a moment. For the thread of its checks."""
        from assets.daemon_state import daemon_state
        from dtef_pipeline.api.plans.plan import use_home

        seen, home = self._seen, self._services.settings.dagster_home
        if seen is None or abs((now - seen[0]).total_seconds()) > _DAEMON_KEPT_S:
            with use_home(str(home)):
                daemon = daemon_state(home, QUEUE_SENSOR)
            seen = self._seen = now, daemon.merge_earlier(seen[1], seen[0]) if seen else daemon
        return seen[1]

    async def _check_health(self) -> HealthBody:
        now, loop = self._services.evaluations.clock(), asyncio.get_running_loop()
        looking = loop.run_in_executor(self._at_daemon, self._read_daemon, now)
        database = loop.run_in_executor(self._at_database, _check_database, self._services, now)
        patience = _FIRST_LOOK_WITHIN_S if self._is_first else _DAEMON_WITHIN_S
        self._is_first = False
        try:
            daemon = await asyncio.wait_for(looking, patience)
        except TimeoutError:
            from assets.daemon_state import DaemonState

            daemon = DaemonState(None, True, f"it did not answer within {format_count(patience, 'second')}")
        stored, evaluations, problems = await database
        problems = [*_find_daemon_problems(daemon, now, evaluations.open or 0), *problems]
        return HealthBody(
            status="degraded" if problems else "ok",
            checked_at=now,
            problems=problems,
            database=stored,
            evaluations=evaluations,
            daemon=DaemonHealth(
                running=daemon.is_running(now),
                last_heartbeat_at=daemon.last_heartbeat_at,
                sensor_on=daemon.is_sensor_on,
                last_tick_at=daemon.ticks.last_at if daemon.ticks else None,
            ),
        )


async def _get_health_monitor(request: Request) -> HealthMonitor:
    look: HealthMonitor = request.app.state.health
    return look


HealthDep = Annotated[HealthMonitor, Depends(_get_health_monitor)]


def _check_database(services: Services, now: datetime) -> tuple[DatabaseHealth, EvaluationHealth, list[str]]:
    """Check the health of the database. If it does not answer, the result says so; no error is raised."""
    store, since = services.evaluations, now - timedelta(days=FAILURES_OF_DAYS)
    try:
        failures = [
            RecentFailure(
                queue_id=view.evaluation.queue_id,
                family=view.evaluation.family,
                subject=subject_words(view.evaluation),
                failed_at=view.last_at,
                reason=view.progress.reason,
            )
            for view in load_evaluation_views(store, store.latest(_MAX_FAILURES, status="failed"))
            if view.last_at >= since
        ]
        health = EvaluationHealth(open=count_unended(store), last_event_at=last_event_at(store), failures=failures)
        problems = [*_find_disk_problems(services), *_find_document_problems(services)]
        return DatabaseHealth(answers=True, bytes=services.votes.database.size()), health, problems
    except StoreError as error:
        _log.error("the database does not answer: %s", error)
        # The error message would name the server and the user.
        problems = ["the database does not answer; see the log", *([DAMAGED_STORE] if is_damaged(str(error)) else [])]
        return DatabaseHealth(answers=False), EvaluationHealth(), problems


def _find_disk_problems(services: Services) -> list[str]:
    """Check whether the disk of an SQLite store is full or almost full."""
    folder = services.votes.database.folder
    free = None if folder is None else shutil.disk_usage(folder).free
    return (
        []
        if free is None or free >= _LOW_ON_DISK
        else [f"the disk of the response store is almost full: {free // 2**20:,} MiB are left"]
    )


def _find_document_problems(services: Services) -> list[str]:
    """List files of personas and scenarios that cannot be read, or that contradict those created over HTTP."""
    problems: list[str] = []
    for spec in (PERSONAS, SCENARIOS):
        try:
            problems += KnownDocuments.load_current(spec, services).conflicts.values()
        except ConfigError as error:
            problems.append(str(error))
    return problems


def _find_daemon_problems(daemon: DaemonState, now: datetime, n_open: int) -> list[str]:
    waiting = f" ({format_count(n_open, 'evaluation')} open)" if n_open else ""
    if daemon.problem:
        return [f"the home of Dagster cannot be read: {daemon.problem}"]
    if not daemon.is_running(now):
        return [f"{NO_DAEMON}{waiting}"]
    if not daemon.is_sensor_on:
        return [f"{NO_SENSOR}{waiting}"]
    fault = daemon.find_sensor_fault(now, QUEUE_SENSOR)
    return [f"{fault}: evaluations wait; {_LOOK_AT_TICKS}{waiting}"] if fault else []


router = APIRouter()
pages_of_health = build_page_router()


@router.get("/healthz", include_in_schema=False)
async def alive() -> dict[str, str]:
    """Check that the process responds; requires no token."""
    return {"status": "ok"}


@router.get("/api/health", response_model=HealthBody)
async def health_as_json(look: HealthDep, holder: OperatorToken) -> JSONResponse:
    """Health of the service: database, daemon, open and failed evaluations."""
    return JSONResponse(convert_to_json((await look.check()).model_dump()), headers={"Cache-Control": "no-store"})


@pages_of_health.get("/health")
async def health_page(request: Request, look: HealthDep, holder: OperatorToken) -> Response:
    """The health page for people."""
    return page(request, "health", "Health", health=await look.check(), days=FAILURES_OF_DAYS, sensor=QUEUE_SENSOR)
