"""Budgets of a nightly run for models in one role, from the panel file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dtef_pipeline.documents import Part

RoleName = Literal["candidate", "judge", "embedder", "analyst"]


class RoleBudget(Part):
    """The budget of a nightly run for models in one role."""

    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
