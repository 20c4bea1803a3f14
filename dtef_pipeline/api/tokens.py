"""Access to the API: a file with the hash, name and role of each token. A token itself is shown only once, when it is made.

tokens:
  - {name: alice, role: reviewer, sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError

TokenRole = Literal["reviewer", "operator", "admin"]
TOKEN_ROLES: tuple[TokenRole, ...] = get_args(TokenRole)
"""Roles, from the fewest rights to the most: a role includes the rights of those before it."""
TOKEN_BYTES = 32


class TokenHolder(Part):
    """The holder of a token and the holder's role."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
    """Name; for a reviewer, the id of the votes."""
    role: TokenRole
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the token's UTF-8 bytes."""

    def may(self, role: TokenRole) -> bool:
        """Whether the holder has the rights of `role`."""
        return TOKEN_ROLES.index(self.role) >= TOKEN_ROLES.index(role)


class TokenFile(Part):
    """All tokens."""

    tokens: Annotated[list[TokenHolder], Field()] = []


DEVELOPER = TokenHolder(name="dev", role="admin", sha256="0" * 64)
"""Holder of all requests with `--dev`."""


class Tokens:
    """The tokens of a file, which is read again when it changes, so that a removed token is refused at once."""

    def __init__(self, path: Path | None) -> None:
        """`path`: None: there are no tokens, and every request is refused. Raises ConfigError as `read_tokens`."""
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._holders: list[TokenHolder] = []
        self._refresh()

    def holder(self, token: str) -> TokenHolder | None:
        """Return the holder of a token; None: unknown token. Compares every hash in constant time. Raises ConfigError as `read_tokens`."""
        return self.find_by_hash(token_hash(token))

    def find_by_hash(self, sha256: str) -> TokenHolder | None:
        """Return the holder by the hash of the token, as logins store it."""
        self._refresh()
        match = None
        for token in self._holders:
            if hmac.compare_digest(token.sha256, sha256):
                match = token
        return match

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except OSError as error:
            message = f"DTEF_API_TOKENS names {self._path}, which cannot be read: {error.strerror}"
            raise ConfigError(f"{message}; run `dtef tokens NAME --role admin` to make the file") from error
        now = (status.st_mtime_ns, status.st_size)
        if now != self._read_at:
            self._holders = read_tokens(self._path)
            self._read_at = now


def read_tokens(path: Path) -> list[TokenHolder]:
    """Read the tokens of a file. Raises ConfigError for errors, with file and line, and for a name or hash that occurs twice."""
    document = read_document(path, "file of tokens", tuple(TokenFile.model_fields), {"tokens": "token"})
    tokens = document.validate_as(TokenFile).tokens
    for field in ("name", "sha256"):
        _refuse_twice(path, field, (getattr(token, field) for token in tokens))
    return tokens


def _refuse_twice(path: Path, field: str, values: Iterable[str]) -> None:
    earlier: set[str] = set()
    for number, value in enumerate(values, start=1):
        if value in earlier:
            shown_value = value if field == "name" else "the hash of another"
            raise ConfigError(f"{path}: token {number}: {field}: got {shown_value} a second time; allowed: each only once")
        earlier.add(value)


def token_hash(token: str) -> str:
    """Return the hash of a token that the file stores."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    """Make a token of 256 random bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


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


_WINDOW_S = 60.0
_MAX_ADDRESSES = 10_000


class RateLimit:
    """Counts the actions of each name in the last minute. Thread-safe."""

    def __init__(self, limit: int, *, counts_refused: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit`: limit per name in any 60 seconds; `counts_refused`: whether refused actions count; `clock`: monotonic seconds."""
        self.most, self.counts_refused, self.clock = limit, counts_refused, clock
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        """By name, the latest counted last."""

    def wait_s(self, name: str) -> int:
        """Return the seconds until the action is allowed, whole and at least 1; 0: it is allowed now, and counted."""
        with self._lock:
            now = self.clock()
            times = self._times.setdefault(name, deque(maxlen=self.most + 1))
            while times and times[0] <= now - _WINDOW_S:
                times.popleft()
            wait = 0 if len(times) < self.most else max(1, math.ceil(times[0] + _WINDOW_S - now))
            if not wait or self.counts_refused:
                times.append(now)
                self._times.move_to_end(name)
                self._remove_idle(now)
            return wait

    def _remove_idle(self, now: float) -> None:
        """Remove names without actions in the last minute, and the longest idle ones if there are too many."""
        while self._times:
            first = next(iter(self._times))
            if len(self._times) <= _MAX_ADDRESSES and self._times[first][-1] > now - _WINDOW_S:
                return
            del self._times[first]
