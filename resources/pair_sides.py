"""Both responses of a pair beside it in one row: what every statement on the two sides of pairs is made with."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from resources.vote_tables import paired_responses, pairs

LEFT_SIDE = paired_responses.alias("of_left")
RIGHT_SIDE = paired_responses.alias("of_right")
SIDE_TEXTS = (
    LEFT_SIDE.c.text.label("left_text"),
    RIGHT_SIDE.c.text.label("right_text"),
    LEFT_SIDE.c.player.label("left_player"),
    RIGHT_SIDE.c.player.label("right_player"),
    LEFT_SIDE.c.names.label("left_names"),
    RIGHT_SIDE.c.names.label("right_names"),
)
"""The texts, the players who wrote them with their names as JSON."""


def with_sides(statement: sa.Select[Any]) -> sa.Select[Any]:
    """A statement on pairs, with the response on the left and the one on the right of each."""
    return statement.join(LEFT_SIDE, LEFT_SIDE.c.response_id == pairs.c.left_id).join(
        RIGHT_SIDE, RIGHT_SIDE.c.response_id == pairs.c.right_id
    )
