"""Services that requests use: opened once per process, thread-safe."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Self

from fastapi import Depends, Request

from dtef_pipeline.api.tokens import RateLimit, Sessions, Tokens
from dtef_pipeline.text.origins import LOOPBACK_HOSTS, list_served_hosts
from resources.evaluations.evaluation_store import EvaluationStore, RunLog, RunLogEvent
from resources.responses.database import ResponseDatabase
from resources.settings import Settings
from resources.votes.game_documents import GameDocumentStore
from resources.votes.vote_store import VoteStore

REQUEST_PATIENCE_S = 4.0
"""Seconds that a request waits for an unavailable database, or its other writers, before the response is 503."""
FAILURES_A_MINUTE = 10
"""Number of wrong tokens per minute from one address before further ones are refused."""


class HomeRunLog:
    """Logs of runs in Dagster's home, which is opened on first use, because importing Dagster takes a second. Nothing is created in it."""

    def __init__(self, home: Path) -> None:
        self._home, self._lock = home, Lock()
        self._log: RunLog | None = None

    def events(self, queue_id: str) -> Sequence[RunLogEvent]:
        log = self._open_log()
        return log.events(queue_id) if log else ()

    def ids_with_runs(self, queue_ids: Sequence[str]) -> Collection[str]:
        log = self._open_log()
        return log.ids_with_runs(queue_ids) if log else ()

    def _open_log(self) -> RunLog | None:
        """Open the log; None: Dagster has not been started there yet. Raises StoreError."""
        with self._lock:
            if self._log is None and (self._home / "dagster.yaml").is_file():
                from assets.evaluations.run_log import run_log_of
                from dtef_pipeline.api.plans.plan import use_home

                with use_home(str(self._home)):
                    self._log = run_log_of(self._home)
        return self._log


@dataclass(frozen=True, slots=True)
class Services:
    """The services of all routes."""

    settings: Settings
    tokens: Tokens
    votes: VoteStore
    evaluations: EvaluationStore
    documents: GameDocumentStore
    open_to_all: bool = False
    """Whether every request has the rights of an administrator: `--dev`, only on loopback."""
    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    """Host names of this server; forms from pages of other hosts are refused."""
    sessions: Sessions = field(default_factory=Sessions)
    failed_tokens: RateLimit = field(default_factory=lambda: RateLimit(FAILURES_A_MINUTE, counts_refused=True))
    """Wrong tokens by address."""

    @classmethod
    def open_services(cls, settings: Settings, tokens: Tokens, open_to_all: bool = False, host: str = "localhost") -> Self:
        """Open services over the response store of the settings, and create its missing tables.

        `host`: host on which the server listens, accepted in addition to those of the settings. Raises ConfigError and StoreError as
        the stores do.
        """
        votes, evaluations, documents = (
            ResponseDatabase(settings.responses_url, patience_s=REQUEST_PATIENCE_S) for _ in range(3)
        )
        hosts = tuple(dict.fromkeys([*list_served_hosts(host), *settings.allowed_hosts]))
        log = HomeRunLog(settings.dagster_home)
        stores = VoteStore(votes), EvaluationStore(evaluations, log), GameDocumentStore(documents)
        return cls(settings, tokens, *stores, open_to_all, hosts)

    def close(self) -> None:
        for store in (self.documents, self.evaluations, self.votes):
            store.database.close()


def get_services(request: Request) -> Services:
    """Return the object of the application that serves the request."""
    services: Services = request.app.state.services
    return services


async def _provide_services(request: Request) -> Services:
    return get_services(request)


ServicesDep = Annotated[Services, Depends(_provide_services)]
