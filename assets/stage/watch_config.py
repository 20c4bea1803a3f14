"""By which settings a family's roll-up of drift gives verdicts: what a run says, else the panel."""

import dagster as dg
from pydantic import Field

from dtef_pipeline.drift.options import WatchOptions


class WatchConfig(dg.Config):
    """By which settings a series gets its verdict, in place of those of the panel's section `drift`."""

    baseline: int | None = Field(
        default=None,
        ge=2,
        description="How many of the first snapshots are the frozen baseline. Not given: as the panel says, or 5.",
    )
    alpha: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Chance of a false `drift` anywhere, however often one looks. Not given: as the panel says, or 0.05.",
    )

    def over(self, options: WatchOptions) -> WatchOptions:
        """The panel's settings, with those of this run in their place."""
        return options.model_copy(update=self.model_dump(exclude_none=True))
