"""How many votes there are: by day, by reviewer, by what was chosen. Counted where they are kept, so that a page of them is quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from resources import vote_tables as tables
from resources.responses.database import ResponseDatabase

_DAY_US = 24 * 3600 * 1_000_000


class VotesOfReviewer(NamedTuple):
    """One reviewer."""

    reviewer_id: str
    reviewer_kind: str
    n_votes: int
    last_at: datetime | None
    """None: imported votes without a time."""


class VoteCounts(NamedTuple):
    """All votes of a store, voided ones too."""

    n_votes: int
    n_voided: int
    n_pairs: int
    by_day: Mapping[date, int]
    """Votes of people and of judges by day (UTC), only of days with some, in their order."""
    n_without_time: int
    """Votes that were imported without a time, and so are of no day."""
    by_choice: Mapping[str, int]
    """Of A, B and tie."""
    by_side: Mapping[str, int]
    """Of left and right: votes for the response that is stored on this side of its pair."""
    reviewers: Sequence[VotesOfReviewer]
    """Those with the most votes first."""


def vote_counts(database: ResponseDatabase) -> VoteCounts:
    """How many there are now."""
    vote = tables.votes.c
    day = (vote.voted_at // _DAY_US).label("day")
    number = sa.func.count().label("n")
    statements = {
        "days": sa.select(day, number).group_by(day).order_by(day),
        "choices": sa.select(vote.choice, vote.shown_as_a, number).group_by(vote.choice, vote.shown_as_a),
        "reviewers": sa.select(vote.reviewer_id, vote.reviewer_kind, number, sa.func.max(vote.voted_at).label("last"))
        .group_by(vote.reviewer_id, vote.reviewer_kind)
        .order_by(number.desc(), vote.reviewer_id),
        "voided": sa.select(sa.func.count().label("n")).select_from(tables.voids),
        "pairs": sa.select(sa.func.count().label("n")).select_from(tables.pairs),
    }
    found = database.read(
        lambda connection: {name: connection.execute(one).mappings().all() for name, one in statements.items()}
    )
    choices, sides = _chosen(found["choices"])
    days = {row["day"]: row["n"] for row in found["days"]}
    n_without_time = days.pop(None, 0)
    return VoteCounts(
        n_votes=sum(choices.values()),
        n_voided=found["voided"][0]["n"],
        n_pairs=found["pairs"][0]["n"],
        by_day={(tables.BEGINNING + timedelta(days=at)).date(): number for at, number in days.items()},
        n_without_time=n_without_time,
        by_choice=choices,
        by_side=sides,
        reviewers=[
            VotesOfReviewer(row["reviewer_id"], row["reviewer_kind"], row["n"], tables.time_of(row["last"]))
            for row in found["reviewers"]
        ],
    )


def votes_since(database: ResponseDatabase, since: datetime) -> int:
    """Votes from this time on."""
    statement = sa.select(sa.func.count()).where(tables.votes.c.voted_at >= tables.microseconds(since))
    return database.read(lambda connection: int(connection.execute(statement).scalar_one()))


def numbers_of_votes(database: ResponseDatabase) -> tuple[int, int]:
    """How many votes there are, voided ones too, and how many of them are voided."""

    def counted(connection: sa.Connection) -> tuple[int, int]:
        votes, voids = (
            connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in (tables.votes, tables.voids)
        )
        return votes, voids

    return database.read(counted)


def latest_actions(database: ResponseDatabase, most: int, before: int | None = None) -> list[dict[str, Any]]:
    """What administrators and operators did, the last first, as `VoteStore.actions` tells it; `before`: the place they are before."""
    action = tables.actions.c
    statement = sa.select(tables.actions).order_by(action.place.desc()).limit(most)
    if before is not None:
        statement = statement.where(action.place < before)
    return database.read(lambda connection: [dict(row) for row in connection.execute(statement).mappings()])


def start_of_days(now: datetime, days: int) -> datetime:
    """The midnight (UTC) at which the last so many days begin, today among them."""
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    return today - timedelta(days=days - 1)


def _chosen(rows: Sequence[Any]) -> tuple[dict[str, int], dict[str, int]]:
    choices, sides = dict.fromkeys(("A", "B", "tie"), 0), dict.fromkeys(("left", "right"), 0)
    for row in rows:
        choices[row["choice"]] = choices.get(row["choice"], 0) + row["n"]
        if row["choice"] in ("A", "B"):
            is_left = (row["choice"] == "A") == (row["shown_as_a"] == "left")
            sides["left" if is_left else "right"] += row["n"]
    return choices, sides
