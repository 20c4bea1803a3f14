"""All pairs and votes of a store, with the players that they are of: what `preference_met` is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.preference.who_met import CastVote, PlayersPair
from resources.vote_tables import paired_responses, pairs, voids, votes
from resources.votes import VoteStore

_LEFT, _RIGHT = paired_responses.alias("of_left"), paired_responses.alias("of_right")
_PAIRS = (
    sa.select(
        *(pairs.c[name] for name in ("pair_id", "family", "item_id", "replaced")),
        _LEFT.c.player.label("left"),
        _RIGHT.c.player.label("right"),
    )
    .join(_LEFT, _LEFT.c.response_id == pairs.c.left_id)
    .join(_RIGHT, _RIGHT.c.response_id == pairs.c.right_id)
    .order_by(pairs.c.pair_id)
)
_CAST = (
    sa.select(*(votes.c[name] for name in ("pair_id", "reviewer_kind", "choice", "shown_as_a")), voids.c.void_id)
    .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
    .order_by(votes.c.vote_id)
)


def pairs_and_votes(store: VoteStore) -> tuple[list[PlayersPair], list[CastVote]]:
    """The pairs and the votes of one moment, voided ones too. Raises StoreError when the store cannot be read."""
    found, said = store.database.read(lambda connection: tuple(_rows(connection, one) for one in (_PAIRS, _CAST)))
    made = [
        PlayersPair(row["pair_id"], row["family"], row["item_id"], row["left"], row["right"], row["replaced"] > 0)
        for row in found
    ]
    return made, [_cast(row) for row in said]


def _rows(connection: sa.Connection, statement: sa.Select[Any]) -> Sequence[Mapping[str, Any]]:
    return connection.execute(statement).mappings().all()  # type: ignore[return-value]


def _cast(row: Mapping[str, Any]) -> CastVote:
    is_void = row["void_id"] is not None
    if row["choice"] == "tie":
        return CastVote(row["pair_id"], row["reviewer_kind"], "tie", is_void)
    is_left = (row["choice"] == "A") == (row["shown_as_a"] == "left")
    return CastVote(row["pair_id"], row["reviewer_kind"], "left" if is_left else "right", is_void)
