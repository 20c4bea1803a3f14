"""Logins of the pages, and tokens that were wrong: kept in memory, so that a restart of the server ends every login."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from dtef_pipeline.api.tokens import TOKEN_BYTES, token_hash

LOGGED_IN_S = 12 * 3600
"""Seconds that a login holds."""
FAILURES_A_MINUTE = 10
"""Wrong tokens of one address after which further ones have to wait."""
_WINDOW_S = 60.0
_MOST_ADDRESSES = 10_000


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

    def token_of(self, session: str) -> str | None:
        """The hash of the token of a login; None: the login has ended, or never began."""
        with self._lock:
            sha256, ends = self._logins.get(token_hash(session), ("", 0.0))
        return sha256 if ends > self._clock() else None

    def end(self, session: str) -> str | None:
        """End a login; returns the hash of its token, None where there is no such login."""
        with self._lock:
            return self._logins.pop(token_hash(session), (None,))[0]


class FailedTokens:
    """Wrong tokens by the address that sent them, over the last minute. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures: dict[str, deque[float]] = {}

    def add(self, address: str) -> tuple[int, int]:
        """Count a wrong token. Returns how many came within a minute, and the seconds to wait before the next one; 0: none."""
        now = self._clock()
        with self._lock:
            if len(self._failures) > _MOST_ADDRESSES:
                self._failures = {one: times for one, times in self._failures.items() if times[-1] > now - _WINDOW_S}
            times = self._failures.setdefault(address, deque(maxlen=FAILURES_A_MINUTE + 1))
            times.append(now)
            while times[0] <= now - _WINDOW_S:
                times.popleft()
            wait = times[0] + _WINDOW_S - now if len(times) > FAILURES_A_MINUTE else 0.0
            return len(times), -int(-wait // 1)
