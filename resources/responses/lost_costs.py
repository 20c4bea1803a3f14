"""What calls without a response cost: they count in the response to their request, once there is one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import sqlalchemy as sa

from resources.responses import database as db


class LostCost(NamedTuple):
    """What calls without a response cost."""

    cost_usd: float | None
    """US dollars of those whose bill is known; None: of none it is."""
    unknown: int
    """Calls of unknown cost."""
    most_usd: float | None
    """US dollars that these may have cost at most; None: there are none, or no price is known."""


def lost_by_key() -> sa.Select[Any]:
    """A request key, and the columns of `LostCost`."""
    lost = db.lost_attempts.c
    unknown = sa.func.count() - sa.func.count(lost.cost_usd)
    sums = sa.func.sum(lost.cost_usd).label("cost_usd"), unknown.label("unknown"), sa.func.sum(lost.most_usd).label("most_usd")
    return sa.select(lost.request_key, *sums).group_by(lost.request_key)


def has_no_response() -> sa.ColumnElement[bool]:
    """Of a lost attempt: nobody got a response to its request yet."""
    responses = db.responses.c
    return ~sa.exists().where(responses.request_key == db.lost_attempts.c.request_key)


def added_up(row: dict[str, Any], lost: LostCost) -> dict[str, Any]:
    """The row of a response with what was lost before it."""
    most = [one for one in (row["unknown_cost_usd_most"], lost.most_usd) if one is not None]
    cost, known = row["cost_usd"], lost.cost_usd or 0.0
    if cost is None and known:
        most.append(known)
    return {
        **row,
        "cost_usd": None if cost is None else cost + known,
        "unknown_cost_attempts": (row["unknown_cost_attempts"] or 0) + lost.unknown,
        "unknown_cost_usd_most": math.fsum(most) if most else None,
    }
