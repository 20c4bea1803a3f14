"""Stage 6 of the rubric family: `rubric_scores`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.embeddings import rubric_embeddings
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.points import SnapshotConfig, rubric_points
from assets.stage.asked import models_of
from assets.stage.checks import Offender, asset_check, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.embeddings import embedder_of
from dtef_pipeline.judging.classes import USUAL_SCALE, class_scale
from dtef_pipeline.judging.judges import judge_hash_of
from dtef_pipeline.rubric.policy import OFFLINE_EMBEDDER, ScoringPolicy
from dtef_pipeline.rubric.score_rows import chosen_embedder, counted_hash, counted_words, policy_text, run_label, score_tables
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.tables import RUBRIC_RUNS


class ScoresConfig(SnapshotConfig):
    """How points become scores."""

    beta: float = Field(default=0.35, ge=0, le=1, description="Weight of similarity in the hybrid score.")
    or_paths: str = Field(default="document", description="How alternative paths count: document or two_group.")
    should_not_paths: str = Field(default="worst", description="Which path of should_not counts: worst or max.")
    embedder: str = Field(default=OFFLINE_EMBEDDER, description="Model whose vectors similarity is measured by.")

    no_own_judge: bool = Field(default=False, description="Whether the points leave out judgements of a maker's own judge.")

    def policy(self, store: Store) -> ScoringPolicy:
        embedder = embedder_of(chosen_embedder(self.embedder, models_of(store)))
        return ScoringPolicy(self.beta, self.or_paths, self.should_not_paths, embedder)


@dg.asset(
    deps=[rubric_points, rubric_embeddings],
    **{**stage(RUBRIC_BLUEPRINT, 6, "rubric_scores", code_version="2"), **RUBRIC_GROUP},
)
def rubric_scores(context: dg.AssetExecutionContext, config: ScoresConfig, store: Store) -> dg.MaterializeResult[Any]:
    """How well models did: one row per cell (a prompt, a model, a temperature, a system prompt), per variant and per model of a blueprint.

    `coverage` is the weighted share of the rubric that is met, `similarity` the closeness to the ideal answer, `hybrid` both in one number at
    the weight beta; it is linear in beta, so `at_0` and `slope` give it for every other. Beside it stand `rubric_similarities` (every two
    responses of a prompt) and `rubric_runs` (by which test, judges and policy a snapshot was scored). No model is asked.
    """
    run = PartitionRun(context, store)
    policy = config.policy(store)
    for key in run.keys:
        with run.attempt(key):
            run.done(key, *_score(store, policy, config, key))
    return run.result()


def _score(store: Store, policy: ScoringPolicy, config: ScoresConfig, key: str) -> tuple[dict[str, Any], str]:
    """The metadata of the partition and the version of its rows."""
    snapshot = config.snapshot
    house, at = store.warehouse, RUBRIC_SPACE.levels(key)
    of_snapshot = {**at, "snapshot": snapshot}
    responses = house.read("rubric_responses", **of_snapshot)
    prompts, criteria = (house.read(name, **at) for name in ("rubric_prompts", "rubric_criteria"))
    points = house.read("rubric_points", **of_snapshot)
    embeddings = house.read_or_empty("rubric_embeddings", **at)
    made = score_tables(responses, prompts, criteria, points, embeddings, policy)
    for name, rows in made._asdict().items():
        house.write(name, rows, **of_snapshot)
    runs = _run_row(store, policy, config, key, responses, points)
    house.write("rubric_runs", runs, **of_snapshot)
    label = runs["run_label"][0].as_py()
    return _metadata(made.rubric_scores, snapshot, label), content_version(made.rubric_scores)


def _run_row(
    store: Store, policy: ScoringPolicy, config: ScoresConfig, key: str, responses: pa.Table, points: pa.Table
) -> pa.Table:
    house, at, snapshot = store.warehouse, RUBRIC_SPACE.levels(key), config.snapshot
    names = ["judge", "approach", "judge_variant", "scale"]
    judged = house.read_or_empty("rubric_judgements", columns=names, **at, snapshot=snapshot)
    judges = judged.group_by(names).aggregate([])
    who = set(zip(judges["approach"].to_pylist(), judges["judge_variant"].to_pylist(), strict=True))
    scale = class_scale(pc.max(judges["scale"]).as_py() or USUAL_SCALE)  # a stage's rows are of one run, and so of one scale
    labelled = bool(pc.any(points["labelled"]).as_py())
    by = counted_hash(judge_hash_of(who, scale), labelled=labelled, no_own_judge=config.no_own_judge)
    counted = counted_words(labelled=labelled, no_own_judge=config.no_own_judge)
    test = house.read("rubric_blueprints", columns=["test_hash"], **at)["test_hash"][0].as_py()
    row = {
        "blueprint": key,
        "snapshot": snapshot,
        "test_hash": test,
        "judge_hash": by,
        "policy_hash": policy.policy_hash,
        "run_label": run_label(test, by, policy.policy_hash),
        "judges": [*sorted(set(judges["judge"].to_pylist())), *counted],
        "policy": policy_text(policy),
        "embedder": policy.embedder,
        "answered_at": pc.max(responses["answered_at"]).as_py(),
    }
    return pa.Table.from_pylist([row], schema=RUBRIC_RUNS)


def _metadata(rows: pa.Table, snapshot: str, label: str) -> dict[str, Any]:
    models = rows.filter(pc.equal(rows["level"], "model")).sort_by([("hybrid", "descending")])
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "run_label": label,
        "models": len(models),
        "preview": markdown(
            models, ["model", "hybrid", "coverage", "similarity", "n_responses_scored", "n_responses"], most=15
        ),
    }


@asset_check(asset=rubric_scores, blocking=True)
def rubric_coverage_in_range(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Coverage and hybrid score lie in 0 to 1 wherever there is one."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_scores", ["prompt", "model", "coverage", "hybrid"]):
        checked += len(rows)
        for name in ("coverage", "hybrid"):
            outside = pc.or_(pc.less(rows[name], -1e-12), pc.greater(rows[name], 1 + 1e-12))
            bad = rows.filter(pc.fill_null(outside, False))
            offenders += [(key, f"{row['prompt']} {row['model']}: {name} {row[name]}") for row in bad.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)
