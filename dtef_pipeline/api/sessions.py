"""Logins of the pages, kept in memory; a restart of the server ends all logins."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import Lock

from dtef_pipeline.api.tokens import TOKEN_BYTES, token_hash

LOGGED_IN_S = 12 * 3600
"""Duration of a login in seconds."""


class Sessions:
    """The valid logins, each with a random id that the browser keeps in a cookie. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._logins: dict[str, tuple[str, float]] = {}

    def begin(self, sha256: str) -> str:
        """Return the id of a new login with the token of this hash."""
        session, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        with self._lock:
            self._logins = {key: login for key, login in self._logins.items() if login[1] > now}
            self._logins[token_hash(session)] = sha256, now + LOGGED_IN_S
        return session

    def find_token(self, session: str) -> str | None:
        """Return the hash of a login's token; None: the login has ended or never existed."""
        with self._lock:
            sha256, ends = self._logins.get(token_hash(session), ("", 0.0))
        return sha256 if ends > self._clock() else None

    def end(self, session: str) -> str | None:
        """End a login; returns the hash of its token, or None if there is no such login."""
        with self._lock:
            return self._logins.pop(token_hash(session), (None,))[0]
