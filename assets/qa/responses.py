"""Stage 3 of the qa family: `qa_responses`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.qa.files import DATASET_PART, QA_GROUP
from assets.qa.prompts import HowConfig, condition_of, qa_prompts
from assets.stage.asked import RolesConfig, asking, groups, models_of
from assets.stage.checks import asset_check, keys_repeated, models_that_failed
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.snapshots import require_snapshot
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.qa.answering import (
    failed_look_ups,
    never_asked,
    prompts_of,
    qa_merged,
    qa_requests,
    qa_response_rows,
)
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.tables import QA_RESPONSES
from dtef_pipeline.qa.transcripts.remote import REMOTE

ASKED_AT_A_TIME = 5_000
"""Requests that are held in memory: so many, or one part's where that has more."""


class QaResponsesConfig(RolesConfig, HowConfig):
    """Which models answer, how they are asked, and how often."""

    models: list[str] = Field(default=[], description="Names, collections, or litellm strings; none: no model is asked.")
    draws: int = Field(default=1, ge=1, description="Repeated responses to each prompt.")
    limit: int | None = Field(default=None, ge=1, description="At most so many items of each part, spread over it.")


@dataclass(frozen=True, slots=True)
class _PartPlan:
    """What is asked of a part."""

    key: str
    all_prompts: pa.Table
    prompts: pa.Table
    """Those of them that are asked now, also where nothing could be looked up, so that nobody is asked, and only what is stored counts."""
    not_looked_up: Mapping[str, str]
    """By prompt id why not."""


@dg.asset(
    deps=[qa_prompts],
    **{**stage(DATASET_PART, 3, "qa_responses", code_version="2", kinds={"litellm", "parquet"}), **QA_GROUP},
)
def qa_responses(context: dg.AssetExecutionContext, config: QaResponsesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What the models answered: one row per (item, condition, model variant, draw) of a part and snapshot.

    Every response is committed to the response store before it is used, so a rerun continues where a run stopped and asks nothing twice. A call
    that failed for good is a row of status `error` with its message, and so is one that was not made because a look-up failed and no response of
    it is stored. Rows of models and conditions that were asked earlier stay.
    """
    run = PartitionRun(context, store)
    specs = models_of(store).resolve(config.models)
    if computed := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(f"model {', '.join(computed)}: it is computed from surveys; allowed: a model that is asked")
    plans = []
    for key in run.keys:
        with run.attempt(key):
            require_snapshot(store.warehouse, "qa_responses", QA_SPACE, [key], config.snapshot)
            plans.append(_plan(store, config, key))
    wanted = sum(len(plan.prompts) - len(plan.not_looked_up) for plan in plans) * config.draws
    with asking(context, store, config, specs, Counter({spec.name: wanted for spec in specs})) as ask:
        for group in groups(plans, [len(plan.prompts) * config.draws * len(specs) for plan in plans], ASKED_AT_A_TIME):
            _answer(run, store, config, specs, group, ask)
    return run.result()


def _plan(store: Store, config: QaResponsesConfig, key: str) -> _PartPlan:
    every = store.warehouse.read("qa_prompts", **QA_SPACE.levels(key))
    condition = condition_of(store, key, config.how)
    chosen = prompts_of(every, condition, config.limit)
    if not len(chosen):
        made = ", ".join(pc.unique(every["condition"]).to_pylist())
        raise DtefError(
            f"{key}: no prompts of condition {condition!r}; made are: {made}; `qa_prompts` makes them, with the same settings"
        )
    return _PartPlan(key, every, chosen, _not_looked_up(store, config, key, chosen))


def _not_looked_up(store: Store, config: QaResponsesConfig, key: str, prompts: pa.Table) -> dict[str, str]:
    if config.retriever != REMOTE:
        return {}
    shown = store.warehouse.read_or_empty("qa_context", columns=["item_id", "condition", "problem"], **QA_SPACE.levels(key))
    return failed_look_ups(prompts, shown)


def _answer(
    run: PartitionRun,
    store: Store,
    config: QaResponsesConfig,
    specs: Sequence[ModelSpec],
    group: Sequence[_PartPlan],
    ask: Ask,
) -> None:
    requests, keys = [], []
    for plan in group:
        with run.attempt(plan.key):
            made = [one for spec in specs for one in qa_requests(plan.prompts, spec, config.draws, config.snapshot)]
            keys += [one.key for one in made]
            requests += [one for one in made if one.prompt_id not in plan.not_looked_up]
    failures = ask(requests)
    stored = store.responses.responses(keys)
    for plan in group:
        at = {**QA_SPACE.levels(plan.key), "snapshot": config.snapshot}
        with run.attempt(plan.key), store.writing("qa_responses", [plan.key]):
            never = never_asked(plan.not_looked_up, specs, config.draws, config.snapshot)
            new = qa_response_rows(plan.prompts, specs, config.draws, config.snapshot, stored, {**failures, **never})
            earlier = store.warehouse.read_earlier("qa_responses", **at)
            rows = qa_merged(QA_RESPONSES.empty_table() if earlier is None else earlier, new, plan.all_prompts)
            store.warehouse.write("qa_responses", rows, **at)
            run.done(plan.key, _metadata(rows, config.snapshot), content_version(rows))


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["call_status"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "models": dg.MetadataValue.json(pc.unique(rows["model"]).to_pylist()),
        "conditions": dg.MetadataValue.json(pc.unique(rows["condition"]).to_pylist()),
        "statuses": dg.MetadataValue.json(statuses),
        "tokens": (pc.sum(rows["prompt_tokens"]).as_py() or 0) + (pc.sum(rows["completion_tokens"]).as_py() or 0),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        "preview": markdown(rows, ["item_id", "condition", "model", "call_status", "finish_reason", "response"]),
    }


@asset_check(asset=qa_responses, blocking=True)
def qa_responses_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No response counts twice: a draw of an item under a condition by a model variant has one row per snapshot."""
    return keys_repeated(context, store, "qa_responses", [*QA_RESPONSE_KEY, "snapshot"])


@asset_check(asset=qa_responses)
def qa_calls_succeed(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which more than 1 % of the calls failed for good; a rerun makes those again."""
    return models_that_failed(context, store, "qa_responses", "call_status", "calls")
