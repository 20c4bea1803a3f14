"""Records of votes as they come out of a file, and those of them that the store knows under another id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dtef_pipeline.preference.vote_records import Record
from resources import vote_tables as tables
from resources.responses.database import ResponseDatabase, chunks


class Line(NamedTuple):
    """One record of a file, and where it stands."""

    where: str
    number: int | None
    kind: str
    record: Record
    is_ballot: bool = False
    """Whether a reviewer hands it in, so that it has no time of its own."""
    is_of_another_tool: bool = False
    """Whether it stood in no store like this one before."""

    def having(self, **values: object) -> Line:
        """The line with other values in its record."""
        return self._replace(record=self.record | values)


Lines = Mapping[str, Sequence[Line]]
"""By kind."""


def under_own_pairs(connection: sa.Connection, database: ResponseDatabase, lines: Lines) -> Lines:
    """The lines with the ids that pairs of the same two responses have here already, or before in the file.

    Stores with different salts give them different ids. A ballot is on what this store has shown, so it keeps its id.
    """
    own = {_sides(line.record): line.record["pair_id"] for line in reversed(lines["pair"])}
    columns = tables.pairs.c
    statement = sa.select(columns.pair_id, columns.left_id, columns.right_id).where(columns.left_id.in_(database.listed))
    for chunk in chunks(sorted({left for left, _ in own})):
        for row in connection.execute(statement, database.keys(chunk)).mappings():
            own[_sides(row)] = row["pair_id"]
    own_id = {line.record["pair_id"]: own[_sides(line.record)] for line in lines["pair"]}
    return {
        kind: [
            line.having(pair_id=own_id.get(line.record["pair_id"], line.record["pair_id"]))
            if kind in ("pair", "vote") and not line.is_ballot
            else line
            for line in of_kind
        ]
        for kind, of_kind in lines.items()
    }


def _sides(record: Mapping[str, Any] | sa.RowMapping) -> tuple[str, str]:
    return record["left_id"], record["right_id"]
