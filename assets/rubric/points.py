"""Stage 5 of the rubric family: `rubric_points`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.judgements import rubric_judgements
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.rubric.functions import ready_function
from dtef_pipeline.rubric.labelled_scores import labelled_points
from dtef_pipeline.rubric.point_rows import point_rows
from dtef_pipeline.rubric.self_preference import own_judge_left_out
from dtef_pipeline.rubric.space import RUBRIC_POINT, RUBRIC_RESPONSE, RUBRIC_SPACE
from resources.point_functions import evaluating


class SnapshotConfig(dg.Config):
    """Which snapshot is scored."""

    snapshot: str = Field(default="base", description="Label of the evaluation pass.")


class PointsConfig(SnapshotConfig):
    """Which judgements count."""

    no_own_judge: bool = Field(
        default=False,
        description="Leave out judgements of a maker's own judge: those of responses by a model of the judge's maker.",
    )
    with_labels: bool = Field(
        default=False,
        description="Let people's labels overrule the judges where there are any; the judges' score stays in `by_judges`.",
    )


@dg.asset(deps=[rubric_judgements], **{**stage(RUBRIC_BLUEPRINT, 5, "rubric_points", code_version="2"), **RUBRIC_GROUP})
def rubric_points(context: dg.AssetExecutionContext, config: PointsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """How far each criterion is met: one row per (response, criterion), 0 to 1, inverted for what a response is not to do.

    A criterion in words has the mean of the judges that answered; where some did not, `low` and `high` say what the missing ones could make of
    it. A function is computed here, scripts in a process of their own. What cannot be scored is null with a reason, never 0. With
    `with_labels` a person's label takes the judges' place (`labelled`, `by_judges`). No model is asked.
    """
    run = PartitionRun(context, store)
    with evaluating(ready_function) as prepare:
        for key in run.keys:
            with run.attempt(key):
                at, snapshot = RUBRIC_SPACE.levels(key), {"snapshot": config.snapshot}
                house = store.warehouse
                responses = house.read("rubric_responses", **at, **snapshot)
                criteria = house.read("rubric_criteria", **at)
                judgements = house.read_or_empty("rubric_judgements", **at, **snapshot)
                if config.no_own_judge:
                    judgements = own_judge_left_out(judgements)
                rows = point_rows(responses, criteria, judgements, prepare)
                if config.with_labels:
                    prompts, labels = house.read("rubric_prompts", **at), house.read_or_empty("rubric_labels")
                    rows = labelled_points(rows, responses, criteria, prompts, labels)
                house.write("rubric_points", rows, **at, **snapshot)
                run.done(key, _metadata(rows, config.snapshot), content_version(rows))
    return run.result()


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    unscored = rows.filter(pc.is_null(rows["score"]))
    reasons = {row["values"]: row["counts"] for row in pc.value_counts(unscored["reason"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "scored": len(rows) - len(unscored),
        "partial": int(pc.sum(pc.cast(rows["partial"], pa.int64())).as_py() or 0),
        "labelled": int(pc.sum(pc.cast(rows["labelled"], pa.int64())).as_py() or 0),
        "unscored": dg.MetadataValue.json(reasons),
        **({"mean": mean} if (mean := pc.mean(rows["score"]).as_py()) is not None else {}),
        "preview": markdown(rows, ["prompt", "model", "block", "kind", "score", "n_answered", "n_judges", "reason"]),
    }


@asset_check(asset=rubric_points, blocking=True)
def rubric_points_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A criterion of a response has one row per snapshot."""
    return keys_repeated(context, store, "rubric_points", [*RUBRIC_RESPONSE, *RUBRIC_POINT[1:], "snapshot"])


@asset_check(asset=rubric_points, blocking=True)
def rubric_points_have_reasons(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A score lies in 0 to 1, and a point without one says why."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_points", ["prompt", "model", "score", "reason"]):
        checked += len(rows)
        wrong = pc.or_(pc.less(rows["score"], 0), pc.greater(rows["score"], 1))
        silent = pc.and_(pc.is_null(rows["score"]), pc.is_null(rows["reason"]))
        bad = rows.filter(pc.or_(pc.fill_null(wrong, False), silent))
        offenders += [(key, f"{row['prompt']} {row['model']}: {row['score']}") for row in bad.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=rubric_points)
def rubric_cells_complete(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of blueprints of which fewer than nine in ten points have a score."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_points", ["score"]):
        checked += len(rows)
        share = 1 - rows["score"].null_count / len(rows) if len(rows) else 1.0
        if share < 0.9:
            offenders.append((key, f"{share:.1%} scored"))
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
