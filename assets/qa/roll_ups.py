"""Roll-ups over all parts of the qa family beside the boards: `qa_costs` and `qa_validity`."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.qa.boards import OF_SCORES, require_qa_scores
from assets.qa.files import QA_GROUP
from assets.stage.checks import asset_check, verdict
from assets.stage.family_costs import define_costs
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from dtef_pipeline.qa.score_validity import QA_VALIDITY_READS
from dtef_pipeline.qa.score_validity import qa_validity as validity_of_scores

qa_costs = define_costs("qa", ["qa_scores"], "dtef qa run")


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
