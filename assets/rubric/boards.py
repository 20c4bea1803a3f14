"""Roll-ups over all blueprints: `rubric_board`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.roll_ups import require_scored
from assets.rubric.scores import rubric_scores
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from dtef_pipeline.rubric.published_boards import BOARD_READS, rubric_boards


@dg.asset(deps=[rubric_scores], **{**roll_up("rubric_board", code_version="2"), **RUBRIC_GROUP})
def rubric_board(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean hybrid score over the latest run of every blueprint, each blueprint once.

    A model is ranked from 10 blueprints on; one with fewer is listed without a rank. Intervals are of other blueprints of this kind. Beside it
    stand the boards of tags, of each blueprint, prompt and criterion (`rubric_board_tag`, `rubric_board_blueprint`, `rubric_board_prompt`,
    `rubric_board_criterion`). Blueprints with the tag `test` are in those of their own alone.
    """
    require_scored(store)
    boards: dict[str, pa.Table] = store.warehouse.query(rubric_boards, only=BOARD_READS)
    overall = boards["rubric_board"]
    shown = ["rank", "model", "score", "low", "high", "coverage", "similarity", "n_parts", "note"]
    return published(
        store,
        boards,
        board=markdown(overall, shown, most=30),
        rubric_board_rows=len(overall),
    )
