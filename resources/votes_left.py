"""How far a reviewer is: votes given, and pairs that are left."""

from __future__ import annotations

import sqlalchemy as sa

from resources.pair_sides import LEFT_SIDE, RIGHT_SIDE, with_sides
from resources.responses.database import ResponseDatabase
from resources.vote_tables import pairs, votes


def votes_of_reviewer(database: ResponseDatabase, reviewer_id: str) -> int:
    """Votes under an id, voided ones too: a pair is voted on once."""
    statement = sa.select(sa.func.count()).select_from(votes).where(votes.c.reviewer_id == reviewer_id)
    return database.read(lambda connection: int(connection.scalar(statement) or 0))


def pairs_open_to(database: ResponseDatabase, reviewer_id: str) -> int:
    """Pairs that the reviewer has not voted on, by what the database alone can tell: `VoteStore.waiting` leaves out those whose texts are
    read alike, too."""
    own = sa.select(votes.c.vote_id).where(votes.c.pair_id == pairs.c.pair_id, votes.c.reviewer_id == reviewer_id)
    open_ones = with_sides(sa.select(sa.func.count()).select_from(pairs)).where(
        LEFT_SIDE.c.text != RIGHT_SIDE.c.text, ~own.exists()
    )
    return database.read(lambda connection: int(connection.scalar(open_ones) or 0))
