"""All pairs and votes of a store, with the players that they are of: what `preference_met` is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sa

from dtef_pipeline.preference.who_met import CastVote, PlayersPair
from resources.pair_sides import LEFT_SIDE, RIGHT_SIDE, SIDE_TEXTS, with_sides
from resources.vote_tables import pairs, voids, votes
from resources.votes import VoteStore, read_alike

_ALL_PAIRS = with_sides(
    sa.select(
        *(pairs.c[name] for name in ("pair_id", "family", "item_id", "replaced")),
        LEFT_SIDE.c.player.label("left"),
        RIGHT_SIDE.c.player.label("right"),
    ).order_by(pairs.c.pair_id)
)
_ALL_CAST = (
    sa.select(*(votes.c[name] for name in ("pair_id", "reviewer_id", "reviewer_kind", "choice", "shown_as_a")), voids.c.void_id)
    .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
    .order_by(votes.c.vote_id)
)
_VOTED_TEXTS = with_sides(
    sa.select(votes.c.vote_id, pairs.c.pair_id, *SIDE_TEXTS)
    .select_from(votes)
    .join(pairs, pairs.c.pair_id == votes.c.pair_id)
    .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
    .where(voids.c.void_id.is_(None))
    .order_by(votes.c.vote_id)
)


def pairs_and_votes(store: VoteStore) -> tuple[list[PlayersPair], list[CastVote]]:
    """The pairs and the votes of one moment, voided ones too. Raises StoreError when the store cannot be read."""
    found, said = store.database.read(lambda connection: tuple(_rows(connection, one) for one in (_ALL_PAIRS, _ALL_CAST)))
    made = [
        PlayersPair(row["pair_id"], row["family"], row["item_id"], row["left"], row["right"], row["replaced"] > 0)
        for row in found
    ]
    return made, [_cast(row) for row in said]


def _rows(connection: sa.Connection, statement: sa.Select[Any]) -> Sequence[Mapping[str, Any]]:
    return connection.execute(statement).mappings().all()  # type: ignore[return-value]


def _cast(row: Mapping[str, Any]) -> CastVote:
    judge = row["reviewer_id"] if row["reviewer_kind"] == "judge" else None
    is_left = (row["choice"] == "A") == (row["shown_as_a"] == "left")
    preferred: Literal["left", "right", "tie"] = "tie" if row["choice"] == "tie" else "left" if is_left else "right"
    return CastVote(row["pair_id"], judge, preferred, row["void_id"] is not None)


def votes_on_equal_texts(store: VoteStore) -> tuple[int, list[str]]:
    """How many votes count, and the ids of those on two texts that differ in nothing but case and white space as reviewers read them; texts
    that nobody has count as different."""
    rows = store.database.read(lambda connection: _rows(connection, _VOTED_TEXTS))
    names = store.hidden_names()
    alike = {pair: read_alike(row, names) for pair, row in {row["pair_id"]: row for row in rows}.items()}
    return len(rows), [row["vote_id"] for row in rows if row["left_text"] and alike[row["pair_id"]]]
