"""Roll-ups over all rounds and segments: `leaderboard`, `breakdowns`, `costs`, `report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
from pydantic import Field

from assets.aggregate import segment_results
from assets.drift import drift_checks
from assets.partitions import OWNERS, markdown
from assets.predict import predictions
from assets.resources import Store
from dtef_pipeline.aggregation.boards import TARGETS, BoardOptions, board
from dtef_pipeline.aggregation.costs import cost_breakdown
from dtef_pipeline.aggregation.costs import costs as add_up_costs
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.report.page import build_report
from dtef_pipeline.tables import METRICS

BREAKDOWNS = {
    "breakdown_round": "round",
    "breakdown_segment": "segment",
    "breakdown_attribute": "attribute",
    "breakdown_question": "question",
    "consistency": "consistency",
    "metric_ranks": "metric",
}


class BoardConfig(dg.Config):
    """What boards rank by."""

    metric: str = Field(default="js", description=f"Metric to rank by: {', '.join(METRICS)}.")


@dg.asset(deps=[segment_results], group_name="boards", kinds={"duckdb", "parquet"}, owners=OWNERS, code_version="1")
def leaderboard(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score over all segments and questions of all rounds, per context level.

    Models of different coverage are ranked by their advantage over the population marginal on the cells both have. `targets` tells whether
    questions that define a segment are left out (`clean`) or kept, as the published figures do (`all`). A model that scores below
    `baseline/population-marginal` adds nothing to ignoring who is asked.
    """
    rows = _write_board(store, "leaderboard", "overall", config.metric)
    store.warehouse.refresh_database()
    clean = rows.filter(pa.compute.equal(rows["targets"], "clean"))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "board": markdown(
                clean, ["rank", "model", "context_level", "score", "vs_marginal", "n_pairs", "coverage"], most=30
            ),
        }
    )


@dg.asset(deps=[segment_results], group_name="boards", kinds={"duckdb", "parquet"}, owners=OWNERS, code_version="1")
def breakdowns(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """The leaderboard by round, segment, attribute and question, the consistency over segments, and the ranks under every metric.

    One table each: `breakdown_round`, `breakdown_segment`, `breakdown_attribute`, `breakdown_question`, `consistency`, `metric_ranks`.
    """
    counts = {table: len(_write_board(store, table, view, config.metric)) for table, view in BREAKDOWNS.items()}
    store.warehouse.refresh_database()
    return dg.MaterializeResult(metadata={f"{table}_rows": count for table, count in counts.items()})


@dg.asset(deps=[predictions], group_name="boards", kinds={"duckdb", "parquet"}, owners=OWNERS, code_version="1")
def costs(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """What language models cost: requests answered, failed and stopped by a budget, tokens and US dollars.

    One row a (round, segment, snapshot, model variant, condition). A request that several predictions stand on (a batch of questions) counts
    once. `unpriced` answers have no known price, and are not in `cost_usd`; baselines ask nobody and have no rows.
    """
    with store.warehouse.connect(only=["predictions"]) as connection:
        if not store.warehouse.values("predictions", "round"):
            raise WarehouseError("no predictions yet: materialize the stages of a round first")
        rows = add_up_costs(connection)
        by_model = pa.Table.from_pandas(cost_breakdown(connection, ["model"]), preserve_index=False)
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


@dg.asset(deps=[leaderboard, breakdowns, drift_checks], group_name="boards", kinds={"html"}, owners=OWNERS, code_version="1")
def report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """One self-contained page for researchers: leaderboard, breakdowns, drift and data quality. Kept as `report.html` in the warehouse."""
    page = build_report(store.warehouse.connect())
    target = Path(store.warehouse.root) / "report.html"
    with store.warehouse.fs.open_output_stream(f"{store.warehouse.root}/report.html") as stream:
        stream.write(page.encode())
    return dg.MaterializeResult(metadata={"path": dg.MetadataValue.path(str(target)), "bytes": len(page.encode())})


def _write_board(store: Store, table: str, view: str, metric: str) -> pa.Table:
    if not store.warehouse.values("scores", "round"):
        raise WarehouseError("no scores yet: materialize the stages of a round first")
    with store.warehouse.connect(only=["scores"]) as connection:
        frames = [board(connection, view, BoardOptions(metric=metric, targets=t)).assign(targets=t) for t in TARGETS]
    rows = pa.Table.from_pandas(_concat(frames), preserve_index=False).replace_schema_metadata(None)
    store.warehouse.write(table, rows)
    return rows


def _concat(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]
