"""The bound on draws per prompt, which manifests and panel files share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MOST_DRAWS_ASKED = 1_000
"""Maximum draws of one prompt or judgement, because all draws of a partition are in memory together."""
Draws = Annotated[int, Field(ge=1, le=MOST_DRAWS_ASKED)]
