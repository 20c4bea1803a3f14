"""Limits of the calls in flight to a provider over all runs that share the response store, and each run's share.

A limit adapts as that of a single run (additive increase, multiplicative decrease), and is divided among the provider's active runs by
demand. A run may use what it holds. It takes free calls and releases those it does not use, so the sum never exceeds the limit,
except for calls in flight when the limit was cut. Runs that are gone hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from resources.responses import database as db
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore

HIGHEST_LIMIT = 1024
"""Maximum number of calls in flight over all runs if no limit of the provider is given."""
KEPT_S = 60.0
"""Seconds for which a limit is remembered without use: a run sends requests in windows with pauses between them."""
MOST_PAUSE_S = 600.0
TURN_S = 5.0
"""Seconds after which the calls that cannot be divided evenly pass to the next runs."""
_LIMIT_ROWS, _SHARE_ROWS = db.provider_limits, db.provider_shares


class Report(NamedTuple):
    """A run's report on a provider. Times are durations in seconds, as machines' clocks may differ."""

    wants: int
    """Calls that the run could have in flight now."""
    holds: int
    """Calls that the run may have in flight: at most its last share, and at least those in flight now."""
    in_flight: int
    answered: int = 0
    """Responses since its last report."""
    limited_before_s: float | None = None
    """Seconds since the start of the newest call that got a 429; None: none since the last report."""
    pause_s: float = 0.0
    """Seconds for which no run should call the provider."""


class Share(NamedTuple):
    """A run's allowed calls."""

    calls: int
    """Calls that the run may have in flight."""
    fair: int
    """Its fair share of the limit; if it is below `calls`, other runs wait for the difference."""
    pause_s: float


class ProviderShares:
    """One run's shares of providers' limits. Use from one thread at a time, that of its claims."""

    def __init__(self, store: ResponseStore, claims: Claims, *, first: int, most: Mapping[str, int]) -> None:
        """Args:
        store: with the database of the claims.
        claims: show which runs are alive.
        first: the initial limit.
        most: calls in flight over all runs, for providers with such a limit.
        """
        self._database, self._claims, self._first, self._most = store.database, claims, first, most

    def take(self, reports: Mapping[str, Report]) -> dict[str, Share]:
        """Return this run's current shares by provider."""

        def work(connection: sa.Connection) -> dict[str, Share]:
            # Runs take their shares one after the other in a fixed order, so that none deadlock.
            limits = {name: self._read_limit(connection, name) for name in sorted(reports)}
            # Not earlier: a run that took its share while this one waited would not count as alive.
            now, alive = self._claims.read_living_owners(connection)
            return {name: self._take_share(connection, limit, reports[name], now, alive) for name, limit in limits.items()}

        return self._database.write(work) if reports else {}

    def close(self) -> None:
        """Release all shares."""
        self._database.write(
            lambda connection: connection.execute(sa.delete(_SHARE_ROWS).where(_SHARE_ROWS.c.owner == self._claims.owner))
        )

    def _read_limit(self, connection: sa.Connection, name: str) -> dict[str, Any]:
        """Return a provider's limit row, created if missing and locked against other runs until this one has its share."""
        connection.execute(self._database.insert(_LIMIT_ROWS).values(self._create_limit(name)).on_conflict_do_nothing())
        return dict(
            connection.execute(sa.select(_LIMIT_ROWS).where(_LIMIT_ROWS.c.provider == name).with_for_update()).one()._asdict()
        )

    def _create_limit(self, name: str) -> dict[str, Any]:
        first = min(self._most.get(name, HIGHEST_LIMIT), self._first)
        return {"provider": name, "calls": first, "clean": 0, "cut_at": 0, "paused_until": 0, "asked_at": 0}

    def _take_share(self, connection: sa.Connection, limit: dict[str, Any], report: Report, now: int, alive: set[str]) -> Share:
        name = limit["provider"]
        maximum = self._most.get(name, HIGHEST_LIMIT)
        rows = connection.execute(sa.select(_SHARE_ROWS).where(_SHARE_ROWS.c.provider == name)).all()
        if absent := [row.owner for row in rows if row.owner not in alive]:
            connection.execute(sa.delete(_SHARE_ROWS).where(_SHARE_ROWS.c.provider == name, _SHARE_ROWS.c.owner.in_(absent)))
        mine = self._claims.owner
        other_rows = [row for row in rows if row.owner in alive and row.owner != mine]
        if not other_rows and now - limit["asked_at"] > KEPT_S * 1e6:
            # The limit of the provider is not known any more.
            limit = self._create_limit(name) | {"paused_until": limit["paused_until"]}
        known_at = min(now, next((row.cut_known_at for row in rows if row.owner == mine), 0))
        in_flight = report.in_flight + sum(row.in_flight for row in other_rows)
        limit = _adapt_limit(limit, report, now, known_at, in_flight=in_flight, maximum=maximum)
        wants = {mine: report.wants, **{row.owner: row.wants for row in other_rows}}
        fair = divide_calls(limit["calls"], wants, turn=now // int(TURN_S * 1e6))[mine]
        n_held = max(report.holds, min(fair, limit["calls"] - sum(row.held for row in other_rows)), 0)
        limit["asked_at"] = now
        connection.execute(sa.update(_LIMIT_ROWS).where(_LIMIT_ROWS.c.provider == name).values(limit))
        share = {"wants": report.wants, "held": n_held, "in_flight": report.in_flight}
        share["cut_known_at"] = now if known_at < limit["cut_at"] else known_at
        insert = self._database.insert(_SHARE_ROWS).values({"provider": name, "owner": mine, **share})
        connection.execute(insert.on_conflict_do_update(index_elements=["provider", "owner"], set_=share))
        return Share(n_held, fair, max(0.0, (limit["paused_until"] - now) / 1e6))


def _adapt_limit(
    limit: Mapping[str, Any], report: Report, now: int, known_at: int, *, in_flight: int, maximum: int
) -> dict[str, Any]:
    """Return the limit after a run's report: until the first 429 it grows by one with each response, so doubles in the time of a call;
    after that by one after as many responses as the limit; a 429 halves it.

    A call that began before its run knew of the last cut (`known_at`) says nothing about the limit since: a burst of 429s over many runs
    halves the limit once. A future time is from a clock that was set back.
    """
    calls, clean, cut_at = min(limit["calls"], maximum), limit["clean"] + report.answered, min(limit["cut_at"], now)
    is_limited = report.limited_before_s is not None and now - int(report.limited_before_s * 1e6) > known_at
    if is_limited and known_at >= cut_at:
        # Half of the calls in use, because a limit that was not reached says nothing about the provider.
        calls, clean, cut_at = max(1, min(calls, in_flight) // 2), 0, now
    elif not cut_at:
        calls, clean = min(maximum, calls + report.answered), 0
    elif clean >= calls:
        calls, clean = min(maximum, calls + clean // calls), 0
    paused_until = max(min(limit["paused_until"], now + int(MOST_PAUSE_S * 1e6)), now + int(report.pause_s * 1e6))
    return {**limit, "calls": calls, "clean": clean, "cut_at": cut_at, "paused_until": paused_until}


def divide_calls(calls: int, wants: Mapping[str, int], *, turn: int = 0) -> dict[str, int]:
    """Divide the calls among owners: each gets what it wants, or as much as any other, plus one for those whose turn it is."""
    parts, remaining, hungry = dict[str, int](), calls, sorted(wants, key=lambda owner: (wants[owner], owner))
    while hungry and wants[hungry[0]] <= remaining // len(hungry):
        owner = hungry.pop(0)
        parts[owner] = wants[owner]
        remaining -= parts[owner]
    for place, owner in enumerate(sorted(hungry)):
        level, remainder = divmod(remaining, len(hungry))
        parts[owner] = level + ((place + turn) % len(hungry) >= len(hungry) - remainder)
    return parts
