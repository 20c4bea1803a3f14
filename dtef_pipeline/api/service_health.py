"""Whether the service does its work: the database answers, Dagster's daemon takes evaluations up, and what failed lately."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.api.persona_routes import PERSONAS
from dtef_pipeline.api.scenario_routes import SCENARIOS
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.shown_evaluations import ShownEvaluation, shown_evaluations
from dtef_pipeline.api.versioned import KnownDocuments
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.text.counted import counted
from resources.vote_counts import votes_since

if TYPE_CHECKING:
    from assets.daemon_state import DaemonState

QUEUE_SENSOR = "evaluation_queue"
FAILURES_OF_DAYS = 7
_LATEST_LOOKED_AT = 200
_DAEMON_KEPT_S = 10.0
NO_DAEMON = "no daemon is running: evaluations wait; start `dtef ui`"
NO_SENSOR = f"the sensor {QUEUE_SENSOR} is switched off: evaluations wait; switch it on in the user interface of Dagster"


class ServiceHealth(NamedTuple):
    """What holds now."""

    at: datetime
    problems: Sequence[str]
    """What is to be mended, in words; none: all is well."""
    database: str | None
    """Why the database does not answer; None: it does."""
    store_bytes: int | None
    open_evaluations: int | None
    last_event_at: datetime | None
    failures: Sequence[ShownEvaluation]
    """The failed evaluations of the last days, the last first."""
    votes_of_days: int | None
    daemon: DaemonState

    def as_json(self) -> dict[str, Any]:
        """What `GET /api/health` answers."""
        last, beat = self.last_event_at, self.daemon.last_heartbeat_at
        return {
            "status": "degraded" if self.problems else "ok",
            "at": self.at.isoformat(timespec="milliseconds"),
            "problems": list(self.problems),
            "database": {"answers": self.database is None, "bytes": self.store_bytes},
            "evaluations": {
                "open": self.open_evaluations,
                "last_event_at": last.isoformat() if last else None,
                "failures": [
                    {"queue_id": one.evaluation.queue_id, "failed_at": one.last_at.isoformat(), "reason": one.progress.reason}
                    for one in self.failures
                ],
            },
            "daemon": {
                "running": self.daemon.is_running(self.at),
                "last_heartbeat_at": beat.isoformat() if beat else None,
                "sensor_on": self.daemon.is_sensor_on,
            },
            "votes": {"days": FAILURES_OF_DAYS, "number": self.votes_of_days},
        }


class _KeptDaemon:
    """The state of the daemon, asked for at most every few seconds: opening Dagster's home takes a moment."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[str, tuple[datetime, DaemonState]] = {}

    def state(self, services: Services, now: datetime) -> DaemonState:
        from assets.daemon_state import daemon_state
        from dtef_pipeline.api.asked_settings import home_named

        home = services.settings.dagster_home
        with self._lock:
            kept = self._found.get(str(home))
            if kept is None or abs((now - kept[0]).total_seconds()) > _DAEMON_KEPT_S:
                with home_named(str(home)):
                    kept = self._found[str(home)] = now, daemon_state(home, QUEUE_SENSOR)
        return kept[1]


_daemon = _KeptDaemon()


def service_health(services: Services) -> ServiceHealth:
    """What holds now. A database that does not answer is told of, not raised."""
    now = services.evaluations.clock()
    daemon = _daemon.state(services, now)
    since = now - timedelta(days=FAILURES_OF_DAYS)
    try:
        latest = shown_evaluations(services.evaluations, services.evaluations.latest(_LATEST_LOOKED_AT))
        size, votes = services.votes.database.size(), votes_since(services.votes.database, since)
        n_open = len(services.evaluations.unended())
    except StoreError as error:
        told = [f"the database does not answer: {error}", *_daemon_problems(daemon, now, 0)]
        return ServiceHealth(now, told, str(error), None, None, None, [], None, daemon)
    failures = [one for one in latest if one.progress.status == "failed" and one.last_at >= since]
    return ServiceHealth(
        at=now,
        problems=[*_daemon_problems(daemon, now, n_open), *_document_problems(services)],
        database=None,
        store_bytes=size,
        open_evaluations=n_open,
        last_event_at=max((one.last_at for one in latest), default=None),
        failures=failures,
        votes_of_days=votes,
        daemon=daemon,
    )


def _document_problems(services: Services) -> list[str]:
    """Files of personas and scenarios that cannot be read, or contradict what was made over HTTP."""
    found: list[str] = []
    for of in (PERSONAS, SCENARIOS):
        try:
            found += KnownDocuments.now(of, services).conflicts.values()
        except ConfigError as error:
            found.append(str(error))
    return found


def _daemon_problems(daemon: DaemonState, now: datetime, n_open: int) -> list[str]:
    waiting = f" ({counted(n_open, 'evaluation')} open)" if n_open else ""
    if daemon.problem:
        return [f"the home of Dagster cannot be read: {daemon.problem}"]
    if not daemon.is_running(now):
        return [f"{NO_DAEMON}{waiting}"]
    return [] if daemon.is_sensor_on else [f"{NO_SENSOR}{waiting}"]
