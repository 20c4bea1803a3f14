"""Which ids are those of judges: people vote under others, so that no vote of a person takes a pair from a judge."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.own_judges import is_id_of_judge
from resources import vote_tables as tables
from resources.responses.database import ResponseDatabase, chunks

JUDGE_KIND = "judge"
NOT_OF_A_JUDGE = "the id of a person, which no judge has"


def judges_among(connection: sa.Connection, database: ResponseDatabase, ids: Collection[str]) -> set[str]:
    """Those of the ids that are of judges: they have the form of one, or a judge is known or has voted under them."""
    found = {one for one in ids if is_id_of_judge(one)}
    for table in (tables.reviewers, tables.votes):
        columns = table.c
        known = sa.select(columns.reviewer_id).where(
            columns.reviewer_kind == JUDGE_KIND, columns.reviewer_id.in_(database.listed)
        )
        for chunk in chunks(sorted(set(ids) - found)):
            found |= set(connection.scalars(known.distinct(), database.keys(chunk)))
    return found


def refuse_judge(database: ResponseDatabase, reviewer_id: str, field: str = "reviewer_id") -> None:
    """Raises BallotError where the id of a person is that of a judge."""
    if database.read(lambda connection: judges_among(connection, database, [reviewer_id])):
        said = f"{of_a_judge(reviewer_id, field)}; allowed: {NOT_OF_A_JUDGE}"
        raise BallotError(said, [(field, said.removeprefix(f"{field}: "))])


def of_a_judge(reviewer_id: str, field: str = "reviewer_id") -> str:
    return f"{field}: the id {reviewer_id[:80]!r} belongs to a judge"
