"""Roll-ups that test what the boards show: `comparisons`, `responsiveness`, `segment_gaps`, `reliability`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import clean
from assets.survey.aggregate import segment_results
from assets.survey.views import BoardConfig, of_views, publish_views


@dg.asset(deps=[segment_results], **roll_up("comparisons", code_version="6"))
def comparisons(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Every two models on the cells that both have a score for: the difference with its interval, and whether chance could have made it.

    Tested over whole batteries, since the segments and questions of a battery are not independent. `p_adjusted` is Holm's over the family of
    a row (`family`). `verdict` is `better` or `not told apart`; `parsed_verdict` uses readable responses only.
    """
    rows = publish_views(store, config, of_views("comparisons"))["comparisons"]
    return dg.MaterializeResult(
        metadata={
            **_said(
                rows,
                config,
                "better",
                [
                    "model",
                    "other_model",
                    "context_level",
                    "difference",
                    "low",
                    "high",
                    "family",
                    "p_adjusted",
                    "verdict",
                    "parsed_verdict",
                ],
            ),
        }
    )


@dg.asset(deps=[segment_results], **roll_up("responsiveness", code_version="6"))
def responsiveness(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether a model's score rises with the answers it is shown as context: one row per (model variant, condition).

    Paired within (segment, question). `evidence-adapting` models do better with more context, `stereotype-holding` ones answer as well
    without it. Empty where every model was asked at one context level.
    """
    rows = publish_views(store, config, of_views("responsiveness"))["responsiveness"]
    shown = ["model", "condition", "levels", "slope", "difference", "low", "high", "p_adjusted", "verdict", "parsed_verdict"]
    return dg.MaterializeResult(metadata={**_said(rows, config, "evidence-adapting", shown)})


@dg.asset(deps=[segment_results], **roll_up("segment_gaps", code_version="1"))
def segment_gaps(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Which segments of an attribute a model predicts worse or better than the others: one row per model, attribute and segment.

    A segment of few people scores low under any model. `expected` is the score of a segment of its size that is predicted as well as the others
    of its attribute; `deviation` is what the score lies below or above it. `verdict` is `worse`, `better` or `not told apart`, adjusted (Holm)
    over the segments of the model's attribute.
    """
    rows = publish_views(store, config, of_views("segment_gaps"))["segment_gaps"]
    shown = ["model", "attribute", "segment", "context_level", "deviation", "low", "high", "p_adjusted", "verdict"]
    of_clean = clean(rows).sort_by([("p_adjusted", "ascending")])
    found = pa.compute.sum(pa.compute.is_in(of_clean["verdict"], pa.array(["worse", "better"]))).as_py() or 0
    return dg.MaterializeResult(
        metadata={
            **_counted(rows, config),
            "told_apart": int(found),
            "preview": markdown(of_clean, shown, most=20),
        }
    )


@dg.asset(deps=[segment_results], **roll_up("reliability", code_version="5"))
def reliability(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """How far repeated draws of the same prompt agree, and how small a difference could be found: one row per model.

    `icc` is the share of a score's variance that is between cells and not between draws. Empty where every prompt was asked once
    (`dtef run --draws 3`).
    """
    rows = publish_views(store, config, of_views("reliability"))["reliability"]
    shown = ["model", "context_level", "n_cells", "n_draws", "icc", "within_sd", "rerun_detectable", "model_detectable"]
    return dg.MaterializeResult(
        metadata={
            **_counted(rows, config),
            "preview": markdown(clean(rows), shown, most=20),
        }
    )


def _said(rows: pa.Table, config: BoardConfig, counted: str, columns: list[str]) -> dict[str, Any]:
    of_clean = clean(rows)
    name = counted.replace("-", "_")
    found = int(pa.compute.sum(pa.compute.equal(of_clean["verdict"], counted)).as_py() or 0)
    return {**_counted(rows, config), name: found, "preview": markdown(of_clean, columns, most=20)}


def _counted(rows: pa.Table, config: BoardConfig) -> dict[str, Any]:
    return {"dagster/row_count": len(rows), **config.recorded()}
