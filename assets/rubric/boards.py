"""Roll-ups over all blueprints: `rubric_board`."""

from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.scores import rubric_scores
from assets.stage.broken_files import left_out
from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.rubric.board import RubricBoardOptions
from dtef_pipeline.rubric.published_boards import BOARD_READS, rubric_boards
from dtef_pipeline.statistics.resampling import RESAMPLES, SEED


class RubricBoardConfig(dg.Config):
    """How sure boards are."""

    resamples: int = Field(default=RESAMPLES, ge=0, description="Bootstrap resamples behind the intervals; 0: no intervals.")
    seed: int = Field(default=SEED, ge=0, description="Seed of all that is drawn.")


@dg.asset(deps=[rubric_scores], **{**roll_up("rubric_board", code_version="1"), **RUBRIC_GROUP})
def rubric_board(context: dg.AssetExecutionContext, config: RubricBoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean hybrid score over the latest run of every blueprint, each blueprint once.

    A model is ranked from 10 blueprints on; one with fewer is listed without a rank. Intervals are of other blueprints of this kind. Beside it
    stand the boards of tags, of each blueprint, prompt and criterion (`rubric_board_tag`, `rubric_board_blueprint`, `rubric_board_prompt`,
    `rubric_board_criterion`). Blueprints with the tag `test` are in those of their own alone.
    """
    if not store.warehouse.values("rubric_scores", "blueprint"):
        raise WarehouseError("no rubric_scores yet: materialize the stages of a blueprint first, or `dtef rubric run`")
    options = RubricBoardOptions(resamples=config.resamples, seed=config.seed)
    boards: dict[str, pa.Table] = store.reader.query(lambda connection: rubric_boards(connection, options), only=BOARD_READS)
    for name, rows in boards.items():
        store.warehouse.write(name, rows)
    store.reader.refresh_database()
    overall = boards["rubric_board"]
    return dg.MaterializeResult(
        metadata={
            **left_out(context, store.reader),
            "dagster/row_count": len(overall),
            "resamples": config.resamples,
            "seed": config.seed,
            "board": markdown(
                overall, ["rank", "model", "score", "low", "high", "coverage", "similarity", "n_parts", "note"], most=30
            ),
            **{f"{name}_rows": len(rows) for name, rows in boards.items()},
        }
    )
