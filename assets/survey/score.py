"""Stage 4, score: `scores`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.settings_config import takes_settings
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, in_batches, markdown, stage
from assets.stage.resources import Store
from assets.survey.predict import predictions
from assets.survey.rounds import ROUND_SEGMENT
from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.scoring.score import score_predictions
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.tables import SCORES
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH


@dg.asset(name="scores", deps=[predictions], **stage(ROUND_SEGMENT, 4, "scores", code_version="5"))
@takes_settings(SurveySettings, "scores", SURVEY_STAGE_SETTINGS["scores"])
def scores(context: dg.AssetExecutionContext, settings: SurveySettings, store: Store) -> dg.MaterializeResult[Any]:
    """How close each prediction came: one row per prediction, with how its response was read and every metric.

    `status` says whether the response could be read (`ok`), and if not, why. Metrics are null unless it could; `score` follows the published
    policy (0 for an unreadable response, 0.1 for one of the wrong length, none for a failed call). `l2_corrected` and `rps_corrected` are errors
    less what a sample of the segment's size adds by chance: lower is better, below 0 is luck. Scoring asks no model.
    """
    run = PartitionRun(context, store)
    for some in in_batches(run.keys):
        with store.writing("scores", some):
            for key in some:
                with run.attempt(key):
                    run.done(key, _score_segment(store, settings, key))
    return run.result()


def _score_segment(store: Store, settings: SurveySettings, key: str) -> dict[str, Any]:
    at = SPACE.levels(key)
    survey = store.warehouse.read("survey_responses", **at)
    snapshots = [settings.only_snapshot] if settings.only_snapshot else store.warehouse.values("predictions", "snapshot", **at)
    tables = [_score_snapshot(store, survey, settings.metric, snapshot=snapshot, **at) for snapshot in snapshots]
    return _metadata(pa.concat_tables(tables) if tables else SCORES.empty_table(), snapshots)


def _score_snapshot(store: Store, survey: pa.Table, metric: str, **at: str) -> pa.Table:
    made = store.warehouse.read("predictions", **at)
    # An older snapshot may hold questions that the survey no longer has: there is nothing left to score them against.
    known = made.filter(pc.is_in(made["question_id"], survey["question_id"].combine_chunks()))
    rows = score_predictions(known, survey, metric=metric)
    store.warehouse.write("scores", rows, **at)
    return rows


def _metadata(rows: pa.Table, snapshots: list[str]) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["status"]).to_pylist()}
    answered = sum(statuses.get(status, 0) for status in ANSWERED)
    computed = pc.starts_with(rows["model_variant"], COMPUTED)
    means = {
        f"mean_{name}{suffix}": pc.mean(of[name]).as_py()
        for suffix, of in (("", rows.filter(pc.invert(computed))), ("_baselines", rows.filter(computed)))
        for name in ("score", "l2_corrected")
    }
    return {
        "dagster/row_count": len(rows),
        "snapshots": ", ".join(snapshots),
        "scored": len(rows) - rows["score"].null_count,
        "unscored": rows["score"].null_count,
        "statuses": dg.MetadataValue.json(statuses),
        **({"parse_rate": statuses.get("ok", 0) / answered} if answered else {}),
        **{name: mean for name, mean in means.items() if mean is not None},
        "preview": markdown(rows, ["question_id", "model", "context_level", "status", "score", "js"]),
    }


@asset_check(asset=scores, blocking=True)
def scores_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A (prompt, context level, model variant, draw, snapshot) is scored once."""
    return keys_repeated(
        context,
        store,
        "scores",
        ["prompt_id", "question_id", "context_level", "condition", "model_variant", "draw", "snapshot"],
    )


@asset_check(asset=scores)
def responses_can_be_read(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which fewer than nine in ten responses could be read as a distribution."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "scores", ["model", "status"]):
        frame = rows.to_pandas()
        frame = frame[frame["status"].isin(ANSWERED)]
        rates = (frame["status"] == "ok").groupby(frame["model"]).mean()
        checked += len(rates)
        offenders += [(key, f"{model}: {rate:.1%} parsed") for model, rate in rates[rates < READ_ENOUGH].items()]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
