"""Roll-ups over all parts of the qa family: `qa_board`."""

from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.qa.files import QA_GROUP
from assets.qa.known_suites import known_suites
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from dtef_pipeline.qa.suite_boards import QA_BOARD_READS, qa_boards

OF_SCORES = [dg.AssetKey("qa_scores")]
"""What the roll-ups are made of."""


class QaBoardConfig(dg.Config):
    """Which suites are public."""

    suites: str | None = Field(
        default=None, description="YAML file with suites of one's own, beside the shipped data/suites.yaml."
    )


@dg.asset(deps=OF_SCORES, **{**roll_up("qa_board", code_version="4"), **QA_GROUP})
def qa_board(context: dg.AssetExecutionContext, config: QaBoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score in each suite: one row per suite, condition, metric, what it was measured by, and model variant.

    Of each part the latest snapshot counts that scored at least half of its items. `score` is the mean over items, `macro_score` that over
    subjects or transcripts; a model is ranked that was asked nine tenths of the items. The
    column `cut` tells this board (`overall`) from those of each part, and of each transcript or subject. Beside it stand `qa_pass_at_k`
    (programs) and the family's part of `comparisons` (every two models, paired by item).
    """
    require_qa_scores(store)
    exposure = known_suites(config.suites).exposure
    boards = store.warehouse.query(lambda made: qa_boards(made, exposure=exposure), only=QA_BOARD_READS)
    shown = [
        "suite",
        "condition",
        "metric",
        "rank",
        "model",
        "score",
        "score_low",
        "score_high",
        "macro_score",
        "n_items",
        "note",
    ]
    overall = boards["qa_board"].filter(pa.compute.equal(boards["qa_board"]["cut"], "overall"))
    return published(store, boards, family="qa", board=markdown(overall, shown, most=30))


def require_qa_scores(store: Store) -> None:
    """Raises WarehouseError where no part was scored."""
    require_made(store, "qa_scores", "part", "dtef qa run")
