"""Stage 3, predict: `predictions`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.asking import asking
from assets.engine.settings_config import takes_settings
from assets.stage.asked import models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, models_that_failed, partition_verdict, read_keys
from assets.stage.freshness import nightly_freshness
from assets.stage.partitions import PartitionRun, in_batches, markdown, stage
from assets.stage.resources import Store
from assets.stage.shared_gateway import command_of
from assets.stage.snapshots import require_snapshot
from assets.stage.versions import content_version
from assets.survey.blueprint import blueprints
from assets.survey.predictor import Plan, PredictOptions, Predictor, windows
from assets.survey.rounds import ROUND_SEGMENT
from dtef_pipeline.asking.calls import TAKEN_OVER
from dtef_pipeline.asking.models import COMPUTED, Models
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.boards.costs import usage_by_model
from dtef_pipeline.family.stage import Limits
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.stored_tables import SURVEY_CALL_TABLES
from dtef_pipeline.survey.tables import BLUEPRINTS
from dtef_pipeline.text.counted import counted


def predict_options(settings: SurveySettings, models: Models) -> PredictOptions:
    """The two reference baselines are among the models: they cost nothing and stand in every table. From the store, only what it had."""
    models_of = {condition: models.resolve(chosen) for condition, chosen in settings.models_of.items()}
    references = [] if settings.from_store and not settings.models else [UNIFORM, POPULATION_MARGINAL]
    return PredictOptions(
        models=models.resolve([*references, *settings.models]),
        models_of=models_of,
        conditions=tuple(settings.conditions),
        context_levels=tuple(settings.context_levels),
        sample=settings.sample,
        draws=settings.draws,
        snapshot=settings.snapshot,
        limits=settings.limits,
        from_store=settings.from_store,
    )


@dg.asset(
    name="predictions",
    deps=[blueprints],
    freshness_policy=nightly_freshness(),
    **stage(ROUND_SEGMENT, 3, "predictions", code_version="4", kinds={"litellm", "parquet"}),
)
@takes_settings(SurveySettings, "predictions", SURVEY_STAGE_SETTINGS["predictions"])
def predictions(context: dg.AssetExecutionContext, settings: SurveySettings, store: Store) -> dg.MaterializeResult[Any]:
    """What the models answered: one row per (prompt, model variant, draw, snapshot) with the raw response, usage, cost and latency.

    Every response is committed to the response store before it appears here, so a rerun asks only for what is missing. A call that failed for
    good is a row of status `error` with its message. Baselines are models too, but no model is asked for them.
    """
    run = PartitionRun(context, store)
    models = predict_options(settings, models_of(store))
    command = command_of(context.run)
    keys = command.keys if command else run.keys
    require_snapshot(store.warehouse, "predictions", SPACE, keys, settings.snapshot)
    stored = partial(store.responses.responses, columns=TAKEN_OVER)
    predictor = Predictor.over(keys, store.warehouse, models, stored, store.responses.models)
    asked = [model for model in models.all_models if model.name in predictor.expected]
    with asking(context, store, settings, asked, predictor.expected, Limits()) as ask:
        written = run.progress("partitions written")
        for group in windows(_plans(run, predictor)):
            failures = predictor.ask(group, ask)
            written.resume(run.n_done)
            for some in in_batches(group):
                with store.writing("predictions", [plan.key for plan in some]):
                    for plan in some:
                        with run.attempt(plan.key):
                            metadata, version = _write(store, predictor, plan, failures)
                            run.done(plan.key, metadata, version)
                            written(run.n_done)
            _say_superseded(context, predictor, group)
    return run.result()


def _write(store: Store, predictor: Predictor, plan: Plan, failures: Mapping[str, Failure]) -> tuple[dict[str, Any], str]:
    """The metadata of the partition, and the version of its rows."""
    rows = predictor.rows(plan, failures)
    snapshot = predictor.options.snapshot
    store.warehouse.write("predictions", rows, **SPACE.levels(plan.key), snapshot=snapshot)
    return {**_metadata(rows, snapshot), "superseded": predictor.superseded[plan.key]}, content_version(rows)


def _say_superseded(context: dg.AssetExecutionContext, predictor: Predictor, plans: Sequence[Plan]) -> None:
    for plan in plans:
        if superseded := predictor.superseded.get(plan.key):
            context.log.warning(
                f"{plan.key}: {counted(superseded, 'earlier prediction')} answered prompts that have changed since"
            )


def _plans(run: PartitionRun, predictor: Predictor) -> Iterator[Plan]:
    for key in run.keys:
        with run.attempt(key):
            yield predictor.plan(key)


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["call_status"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "models": dg.MetadataValue.json(pc.unique(rows["model"]).to_pylist()),
        "call_statuses": dg.MetadataValue.json(statuses),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        **({} if pc.all(pc.starts_with(rows["model_variant"], COMPUTED)).as_py() else {"usage": _usage(rows)}),
        "cost_unknown": int(
            pc.sum(pc.and_(pc.equal(rows["call_status"], "answered"), pc.is_null(rows["cost_usd"]))).as_py() or 0
        ),
        "tokens": (pc.sum(rows["prompt_tokens"]).as_py() or 0) + (pc.sum(rows["completion_tokens"]).as_py() or 0),
        "preview": markdown(rows, ["question_id", "model", "context_level", "call_status", "response"]),
    }


def _usage(rows: pa.Table) -> dg.MarkdownMetadataValue:
    """What each language model of the partition used."""
    used = usage_by_model(rows, SURVEY_CALL_TABLES)
    columns = ["model", "answered", "failed", "budget_stopped", "prompt_tokens", "completion_tokens", "cost_usd"]
    return markdown(used, columns, most=len(used))


@asset_check(asset=predictions, blocking=True)
def predictions_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No response counts twice: a request has one row per question, context level and condition."""
    return keys_repeated(context, store, "predictions", ["request_key", "question_id", "context_level", "condition"])


@asset_check(asset=predictions, blocking=True)
def every_prediction_has_a_blueprint(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Every prediction made for the current blueprints belongs to one of their prompts."""
    offenders, checked = list[Offender](), 0
    made = dict(read_keys(store, "blueprints", ["prompt_id", "blueprint_hash"]))
    for key, rows in read_keys(store, "predictions", ["prompt_id", "blueprint_hash", "model"]):
        prompts = made.get(key, BLUEPRINTS.empty_table())
        current = rows.filter(pc.is_in(rows["blueprint_hash"], prompts["blueprint_hash"].combine_chunks()))
        checked += len(current)
        lacking = current.filter(pc.invert(pc.is_in(current["prompt_id"], prompts["prompt_id"].combine_chunks())))
        offenders += [(key, f"{row['model']} {row['prompt_id']}") for row in lacking.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=predictions)
def calls_succeed(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which more than 1 % of the calls failed for good; a rerun makes those calls again."""
    return models_that_failed(context, store, "predictions", "call_status", "calls")
