"""Roll-ups over all rounds and segments: `leaderboard`, `breakdowns`, `costs`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import Connection, clean
from assets.stage.schema_metadata import column_schema
from assets.survey.aggregate import segment_results
from assets.survey.predict import predictions
from assets.survey.views import BoardConfig, of_views, publish_views
from dtef_pipeline.boards.costs import cost_breakdown
from dtef_pipeline.boards.costs import costs as add_up_costs
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.report.charts import as_markdown_image
from dtef_pipeline.survey.boards.linked import question_batteries
from dtef_pipeline.survey.boards.published import PUBLISHED
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.boards.shared_pairs import on_shared_pairs
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.charts import board_chart, context_curves, segment_heat_map
from dtef_pipeline.tables import described

BREAKDOWNS = tuple(view.table for view in PUBLISHED if view.is_board and view.table != "leaderboard")


@dg.asset(deps=[segment_results], **roll_up(code_version="11"))
def leaderboard(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score over all segments and questions of all rounds, per context level.

    Each mean has its 95 % interval; `skill` places it between the leave-one-out marginal (0) and the ceiling (1); models of one `tier` cannot
    be told apart from its first. Models of different coverage are ranked by the score they would have, had all been asked the same.
    `targets` tells whether questions that define a segment are left out (`clean`) or kept, as the published figures do (`all`). A model
    that scores below `baseline/population-marginal` adds nothing to ignoring who is asked. Beside it stands the table `question_batteries`:
    which questions intervals count as one, over all rounds, and why.
    """
    batteries = store.warehouse.query(question_batteries, only=["survey_responses"])
    store.warehouse.write("question_batteries", batteries)
    rows = publish_views(store, config, of_views("leaderboard"))["leaderboard"]
    best = clean(rows)
    shown = [
        "rank",
        "tier",
        "model",
        "context_level",
        "score",
        "score_low",
        "score_high",
        "skill",
        "n_pairs",
    ]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "linked_batteries": len(pa.compute.unique(batteries["linked_battery"])),
            **column_schema("leaderboard", described(rows.schema, BOARD_COLUMNS)),
            **config.recorded(),
            "board": markdown(best, [name for name in shown if name in best.column_names], most=30),
            "plot": dg.MetadataValue.md(as_markdown_image(board_chart(best.to_pandas()))),
            **_context_plot(store, best),
        }
    )


@dg.asset(deps=[segment_results], **roll_up(code_version="11"))
def breakdowns(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """The leaderboard by round, segment, attribute and question, the consistency over segments, and the ranks under every metric.

    One table each: `breakdown_round`, `breakdown_segment`, `breakdown_attribute`, `breakdown_question`, `consistency`, `metric_ranks`.
    """
    written = publish_views(store, config, of_views(*BREAKDOWNS))
    segments = clean(written["breakdown_segment"]).to_pandas()
    return dg.MaterializeResult(
        metadata={
            **{f"{table}_rows": len(rows) for table, rows in written.items()},
            **config.recorded(),
            "plot": dg.MetadataValue.md(as_markdown_image(segment_heat_map(segments))),
        }
    )


@dg.asset(deps=[predictions], **roll_up("costs", code_version="2"))
def costs(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """What language models cost: requests answered, failed and stopped by a budget, tokens and US dollars.

    One row per (round, segment, snapshot, model variant, condition). A request that several predictions stand on (a batch of questions) counts
    once. `unpriced` responses have no known price, and are not in `cost_usd`; baselines ask no model and have no rows.
    """
    if not store.warehouse.values("predictions", "round"):
        raise WarehouseError("no predictions yet: materialize the stages of a round first")

    def added_up(connection: Connection) -> tuple[pa.Table, pa.Table]:
        by_model = pa.Table.from_pandas(cost_breakdown(connection, ["model"], KEYS), preserve_index=False)
        return add_up_costs(connection, KEYS), by_model

    rows, by_model = store.warehouse.query(added_up, only=["predictions"])
    store.warehouse.write("costs", rows)
    store.warehouse.refresh_database()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "cost_usd": float(pa.compute.sum(rows["cost_usd"]).as_py() or 0),
            "unpriced": int(pa.compute.sum(rows["unpriced"]).as_py() or 0),
            "by_model": markdown(
                by_model, ["model", "answered", "failed", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced"], most=30
            ),
        }
    )


def _context_plot(store: Store, board: pa.Table) -> dict[str, Any]:
    """Scores over the context levels, each model's over the pairs that it has at all of its levels, where there are several."""
    if len(pa.compute.unique(board["context_level"])) < 2:
        return {}
    shared = store.warehouse.query(lambda connection: on_shared_pairs(connection, board.to_pandas()), only=["scores"])
    return {"context_plot": dg.MetadataValue.md(as_markdown_image(context_curves(shared)))}
