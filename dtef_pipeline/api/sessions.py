"""Logins of the pages, kept in memory: a restart of the server ends every login."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import Lock

from dtef_pipeline.api.tokens import TOKEN_BYTES, token_hash

LOGGED_IN_S = 12 * 3600
"""Seconds that a login holds."""


class Sessions:
    """The logins that hold, each known by a random id that the browser has in a cookie. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._logins: dict[str, tuple[str, float]] = {}

    def begin(self, sha256: str) -> str:
        """The id of a new login by the token with this hash."""
        session, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        with self._lock:
            self._logins = {key: login for key, login in self._logins.items() if login[1] > now}
            self._logins[token_hash(session)] = sha256, now + LOGGED_IN_S
        return session

    def find_token(self, session: str) -> str | None:
        """The hash of the token of a login; None: the login has ended, or never began."""
        with self._lock:
            sha256, ends = self._logins.get(token_hash(session), ("", 0.0))
        return sha256 if ends > self._clock() else None

    def end(self, session: str) -> str | None:
        """End a login; returns the hash of its token, None where there is no such login."""
        with self._lock:
            return self._logins.pop(token_hash(session), (None,))[0]
