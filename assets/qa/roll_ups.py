"""Roll-ups over all parts of the qa family beside the boards: `qa_costs` and `qa_validity`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.qa.boards import OF_SCORES, require_qa_scores
from assets.qa.files import QA_GROUP
from assets.stage.checks import asset_check, verdict
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from dtef_pipeline.qa.role_costs import QA_COSTS_READ
from dtef_pipeline.qa.role_costs import qa_costs as costs_of_calls
from dtef_pipeline.qa.score_validity import QA_VALIDITY_READS
from dtef_pipeline.qa.score_validity import qa_validity as validity_of_scores


@dg.asset(deps=OF_SCORES, **{**roll_up("qa_costs", code_version="2"), **QA_GROUP})
def qa_costs(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """What candidates and judges cost: one row per role, suite, evaluator and model variant, candidates first, the dearest first.

    Each call counts once, however many rows rest on it, over all snapshots. A call whose price is unknown costs nothing that is known, and is
    counted in `unpriced`. `unknown_cost_attempts` counts attempts that may have been billed, such as timeouts.
    """
    require_made(store, "qa_responses", "part", "dtef qa run")
    unknown = store.responses.unknown_costs()
    rows = store.warehouse.query(lambda made: costs_of_calls(made, store.responses.responses, unknown), only=QA_COSTS_READ)
    shown = [
        "role",
        "suite",
        "evaluator",
        "model",
        "answered",
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "unpriced",
        "unknown_cost_attempts",
        "unknown_cost_usd_most",
    ]
    total = pa.compute.sum(rows["cost_usd"]).as_py()
    told = {} if total is None else {"cost_usd": total}
    return published(store, {"qa_costs": rows}, costs=markdown(rows, shown, most=30), **told)


@dg.asset(deps=OF_SCORES, **{**roll_up("qa_validity", code_version="1"), **QA_GROUP})
def qa_validity(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Whether scores mean what they say: one row per suite, condition, model variant, check and what was measured.

    `position_bias`: how far a model's mean moves with the order of the options. Of judges: how often the arbiter and the number in the answer
    disagree, how many judgements are by a model of the same maker, how many failed, and whether longer answers get better scores. `warn` marks
    what is worth a look.
    """
    require_qa_scores(store)
    rows = store.warehouse.query(validity_of_scores, only=QA_VALIDITY_READS)
    shown = ["check", "suite", "condition", "model", "value", "low", "high", "n", "warn", "note"]
    warned = pa.compute.sum(rows["warn"]).as_py() or 0
    return published(store, {"qa_validity": rows}, warned=warned, validity=markdown(rows, shown, most=30))


@asset_check(asset=qa_validity)
def qa_scores_are_valid(store: Store) -> dg.AssetCheckResult:
    """Warns of a model or a judge whose scores may rest on something besides the answer; `qa_validity` says on what."""
    rows = store.warehouse.read("qa_validity").to_pylist()
    offenders = [f"{row['check']} {row['suite']} {row['model']}: {row['value']:.3f}" for row in rows if row["warn"]]
    return verdict(offenders, checked=len(rows), severity=dg.AssetCheckSeverity.WARN)
