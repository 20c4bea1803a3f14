"""The survey's roll-ups: their configuration, and tables made of the views of `survey.boards`."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from dagster import Config
from pydantic import Field

from assets.stage.resources import Store
from assets.stage.roll_up import Make, publish
from dtef_pipeline.boards.boards import BoardEvidence
from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.statistics.drawing import SEED
from dtef_pipeline.survey.boards.published import PUBLISHED
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import CODED, HELD, Connection, view
from dtef_pipeline.survey.tables import METRICS


class BoardConfig(Config):
    """What boards rank by, and how sure they are."""

    metric: str = Field(default="js", description=f"Metric to rank by: {', '.join(METRICS)}.")
    intervals: bool = Field(default=True, description="Whether boards have intervals, ranges of ranks and tiers.")
    seed: int = Field(default=SEED, ge=0, description="Seed of the samples of answers that intervals allow for.")

    non_answers: bool = Field(default=False, description="Also segments of people who gave no answer, such as party:refused.")

    def options(self, targets: str) -> BoardOptions:
        return SurveyBoardOptions(
            metric=self.metric, targets=targets, intervals=self.intervals, seed=self.seed, non_answers=self.non_answers
        )

    def recorded(self) -> dict[str, Any]:
        """As metadata."""
        return {"metric": self.metric, "intervals": self.intervals, "seed": self.seed, "non_answers": self.non_answers}


def publish_views(store: Store, config: BoardConfig, make: Make) -> dict[str, pa.Table]:
    """Write the tables that `make` makes of the survey's scores; what was written. Raises WarehouseError before anything is scored."""
    return publish(store, HELD, CODED, config.options, make)


def of_views(*tables: str) -> Make:
    """Makes published tables, given by name, of the views that they store."""
    views = {one.table: one.name for one in PUBLISHED if one.table in tables}

    def make(connection: Connection, options: BoardOptions, evidence: BoardEvidence | None) -> Mapping[str, pd.DataFrame]:
        return {table: view(connection, by, options, evidence) for table, by in views.items()}

    return make
