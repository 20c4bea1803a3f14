"""Stage 5 of the qa family: `qa_executions`."""

import time
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.qa.files import DATASET_PART, QA_GROUP
from assets.qa.responses import qa_responses
from assets.stage.checks import Offender, asset_check, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.judging.code_checks import UNDECIDED_CHECKS
from dtef_pipeline.qa.executions import Execution, execution_rows, executions, known_verdicts, rows_so_far, to_run
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.tables import QA_EXECUTIONS
from resources.sandbox.run import CHECK_TIMEOUT, LEVEL_CHOICES, found_level, settled_checks

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds between two writings of what came of programs, which double: a run that was killed goes on from there."""


class ExecutionsConfig(dg.Config):
    """How code is run."""

    snapshot: str = Field(default="base", description="Label of the evaluation pass.")
    sandbox: str = Field(
        default="", description=f"Isolation: {', '.join(LEVEL_CHOICES)}; empty: as DTEF_SANDBOX says, else auto."
    )
    timeout_s: float = Field(default=CHECK_TIMEOUT, gt=0, description="Seconds that all tests of a program may take.")
    trust_answers: bool = Field(default=False, description="Run code where only resource limits hold it.")


@dg.asset(deps=[qa_responses], **{**stage(DATASET_PART, 5, "qa_executions", code_version="2"), **QA_GROUP})
def qa_executions(context: dg.AssetExecutionContext, config: ExecutionsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What came of running the code in responses: one row per response to an item with tests, with the verdict and what was said.

    A program and its tests run in two processes apart from this machine, between which only plain data crosses. A program that was run before at
    the same level is not run again. One that ran out of time while it waited is run once more after all others, alone, and that verdict counts.
    A fault of the sandbox is `sandbox_unavailable` or `sandbox_error`, never a fault of the response. Parts without code have no rows.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        with run.attempt(key):
            at = {**QA_SPACE.levels(key), "snapshot": config.snapshot}
            responses = store.warehouse.read("qa_responses", **at)
            items = store.warehouse.read("qa_items", columns=["item_id", "scorers", "reference"], **QA_SPACE.levels(key))
            rows = _checked(store, config, at, executions(responses, items, config.timeout_s))
            store.warehouse.write("qa_executions", rows, **at)
            run.done(key, _metadata(rows, config.snapshot), content_version(rows.drop_columns(["wall_s"])))
    return run.result()


def _checked(store: Store, config: ExecutionsConfig, at: dict[str, str], planned: list[Execution]) -> pa.Table:
    """The rows of all executions; what is known by then is written from time to time, beside the earlier rows of what is not."""
    if not planned:
        return QA_EXECUTIONS.empty_table()
    level = found_level(config.sandbox or None, trust_answers=config.trust_answers).level
    earlier = store.warehouse.read_earlier("qa_executions", **at)
    results = {} if earlier is None else known_verdicts(earlier, level)
    wanted = to_run(planned, results)
    pause, due = FIRST_PAUSE_S, 0.0
    how: dict[str, Any] = {
        "level": config.sandbox or None,
        "timeout_s": config.timeout_s,
        "trust_answers": config.trust_answers,
    }
    for key, result in settled_checks(wanted, **how):
        if result is not None:
            results[key] = result
        if time.monotonic() >= due:
            store.warehouse.write("qa_executions", rows_so_far(planned, results, earlier), **at)
            due, pause = time.monotonic() + pause, min(2 * pause, LONGEST_PAUSE_S)
    return execution_rows(planned, results)


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    verdicts = {row["values"]: row["counts"] for row in pc.value_counts(rows["verdict"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "verdicts": dg.MetadataValue.json(verdicts),
        "isolation": dg.MetadataValue.json([one for one in pc.unique(rows["isolation"]).to_pylist() if one]),
        "wall_s": pc.sum(rows["wall_s"]).as_py() or 0.0,
        "preview": markdown(rows, ["item_id", "model", "draw", "verdict", "message", "isolation"]),
    }


@asset_check(asset=qa_executions)
def qa_code_was_run(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns where code could not be run, or ran where it could read files of this machine."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_executions", ["verdict", "message", "flags"]):
        checked += len(rows)
        undecided = rows.filter(pc.is_in(rows["verdict"], pa.array(UNDECIDED_CHECKS, pa.string())))
        offenders += [(key, text) for text in pc.unique(undecided["message"]).to_pylist()[:3]]
        if any("weak_isolation" in flags for flags in rows["flags"].to_pylist()):
            offenders.append((key, "weak isolation: programs could read files of this machine"))
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
