"""Claims on requests, so that two runs over the same prompts buy each response once, on one or several machines.

A claim is a row of the response store's database. It ends when the response is committed, when its owner releases it, or when its owner is
gone; so a killed run blocks no other run.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import sqlalchemy as sa

from resources.responses import database as db
from resources.responses.engines import PATIENCE_S
from resources.responses.processes import Process
from resources.responses.store import ResponseStore

GONE_AFTER_S = 2 * PATIENCE_S
"""Seconds without a sign of life after which an owner counts as dead. Runs that waited for an unreachable database are alive, although they
could give none."""


class ClaimOutcome(NamedTuple):
    """The result of claiming some request keys. Those in neither set are held by another living owner."""

    mine: set[str]
    """Requests for this owner to send."""
    answered: set[str]
    """Requests with a stored response, which no run needs to send."""


class Claims:
    """One owner of claims, such as a gateway run. Use from one thread at a time."""

    def __init__(self, store: ResponseStore, *, ttl_s: float = GONE_AFTER_S, now: Callable[[], float] | None = None) -> None:
        """Args:
            store: the store for the responses.
            ttl_s: seconds without a heartbeat after which an owner is gone. All owners on a store should agree.
            now: seconds since 1970. By default the clock of the PostgreSQL server, so that the machines' clocks need not agree; with
        SQLite, which only one machine uses, the machine's clock.
        """
        self._database, self._ttl_us, self._now = store.database, int(ttl_s * 1e6), now
        self._owner = uuid.uuid4().hex
        self._process = Process.current()
        self._orphans_are_gone = False
        self._prepare_statements()

    def claim(self, keys: Sequence[str]) -> ClaimOutcome:
        """Claim the request keys that have no response and no living owner. Claiming a held key again keeps it."""
        parameters = self._database.keys(sorted(set(keys)))

        def work(connection: sa.Connection) -> ClaimOutcome:
            self._release_dead_claims(connection, self._write_sign_of_life(connection))
            connection.execute(self._take, parameters)
            mine = set(connection.scalars(self._held, parameters))
            # After the claims: a response that is committed later was claimed, so it is not missed.
            answered_keys = set(connection.scalars(self._answered, parameters))
            if mine & answered_keys:
                connection.execute(self._drop, self._database.keys(sorted(mine & answered_keys)))
            return ClaimOutcome(mine - answered_keys, answered_keys)

        return self._database.write(work, exclusive=True) if keys else ClaimOutcome(set(), set())

    @contextmanager
    def hold_all(self, keys: Sequence[str]) -> Iterator[None]:
        """Hold all of the keys, after waiting while another living owner holds one. The keys may be any hashes of 32 digits."""
        # Two owners that hold a part each both release it, and retry after different pauses.
        pause_s = 0.01 + int(self._owner[:4], 16) % 40 / 1000
        while (mine := self.claim(keys).mine) != set(keys):
            self.release(mine)
            time.sleep(pause_s)
        try:
            yield
        finally:
            self.release(keys)

    def release(self, keys: Iterable[str]) -> None:
        """Release claims, because the requests failed or are no longer sent: others may try at once."""
        given_back = sorted(set(keys))

        def work(connection: sa.Connection) -> None:
            self._write_sign_of_life(connection)
            connection.execute(self._drop, self._database.keys(given_back))

        if given_back:
            self._database.write(work, exclusive=True)

    @property
    def owner(self) -> str:
        return self._owner

    def beat(self) -> None:
        """Send a heartbeat. Call several times within `ttl_s`."""
        self._database.write(self._write_sign_of_life, exclusive=True)

    def close(self) -> None:
        """Release all claims."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(db.claims).where(db.claims.c.owner == self._owner))
            connection.execute(sa.delete(db.claimants).where(db.claimants.c.owner == self._owner))

        self._database.write(work, exclusive=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare_statements(self) -> None:
        """Prepare the statements on the keys of `listed`."""
        key_query, claims = self._database.key_query, db.claims.c
        # SQLite cannot tell ON CONFLICT from a join's ON after a SELECT without WHERE.
        free = key_query.add_columns(sa.literal(self._owner)).where(sa.true())
        take = self._database.insert(db.claims).from_select(["request_key", "owner"], free)
        self._take = take.on_conflict_do_nothing(index_elements=["request_key"])
        is_listed = self._database.among(claims.request_key)
        self._held = sa.select(claims.request_key).where(claims.owner == self._owner, is_listed)
        response_key = db.responses.c.request_key
        self._answered = sa.select(response_key).where(self._database.among(response_key))
        self._drop = sa.delete(db.claims).where(claims.owner == self._owner, is_listed)

    def _write_sign_of_life(self, connection: sa.Connection) -> int:
        """Record that this owner is alive; return the time, in microseconds since 1970."""
        seen_at = self._read_clock(connection)
        row = {"owner": self._owner, **self._process._asdict(), "seen_at": seen_at}
        upsert = self._database.insert(db.claimants).values(row)
        connection.execute(upsert.on_conflict_do_update(index_elements=["owner"], set_={"seen_at": seen_at}))
        return seen_at

    def _release_dead_claims(self, connection: sa.Connection, now: int) -> None:
        claimants = connection.execute(sa.select(db.claimants).where(db.claimants.c.owner != self._owner)).all()
        gone_owners = [claimant.owner for claimant in claimants if self._is_gone(claimant, now)]
        if gone_owners:
            connection.execute(sa.delete(db.claimants).where(db.claimants.c.owner.in_(gone_owners)))
        if gone_owners or not self._orphans_are_gone:
            alive = sa.select(db.claimants.c.owner)
            connection.execute(sa.delete(db.claims).where(db.claims.c.owner.not_in(alive)))
            self._orphans_are_gone = True

    def _is_gone(self, claimant: Any, now: int) -> bool:
        # The time is far in the future, so the clock was set back since.
        silent = abs(now - claimant.seen_at) > self._ttl_us
        return silent or Process(claimant.machine, claimant.pid, claimant.started).is_dead()

    def _read_clock(self, connection: sa.Connection) -> int:
        if self._now is not None:
            return int(self._now() * 1e6)
        if self._database.is_postgresql:
            return int(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp()) * 1000000")).scalar_one())
        return time.time_ns() // 1000
