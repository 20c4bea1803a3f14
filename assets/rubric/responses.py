"""Stage 2 of the rubric family: `rubric_responses`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP, rubric_blueprints
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.stage.asked import RolesConfig, asking, groups, models_of
from assets.stage.checks import asset_check, keys_repeated, models_that_failed
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.snapshots import require_snapshot
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.asking.models import Models
from dtef_pipeline.rubric.candidates import Candidates, chosen_selectors
from dtef_pipeline.rubric.conversations import Conversation, merged_responses, response_rows, scripts
from dtef_pipeline.rubric.space import RUBRIC_RESPONSE, RUBRIC_SPACE
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES

AT_A_TIME = 5_000
"""Conversations that are held in memory."""


class ResponsesConfig(RolesConfig):
    """Which models answer, and how often."""

    models: list[str] = Field(
        default=[], description="Names, collections, or litellm strings; none: the models that each blueprint names."
    )
    draws: int = Field(default=1, ge=1, description="Repeated responses to each prompt.")


@dataclass(frozen=True, slots=True)
class _Plan:
    key: str
    conversations: list[Conversation]
    asked: list[tuple[str, int, str]]
    """What is asked by now: prompt, place of the system prompt, hash of the conversation."""


@dg.asset(
    deps=[rubric_blueprints],
    **{**stage(RUBRIC_BLUEPRINT, 2, "rubric_responses", code_version="2", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_responses(context: dg.AssetExecutionContext, config: ResponsesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What the models wrote: one row per (prompt, model, temperature, system prompt, draw) of a blueprint and snapshot.

    A conversation with turns that the model writes is asked turn by turn. Every turn is committed to the response store before the next is
    asked, so a rerun continues where a run stopped and asks nothing twice. A blank response has the status `empty` and is unscored, one that
    `max_tokens` cut is scored and marked; a call that failed for good is a row of status `error` with its message.
    """
    run = PartitionRun(context, store)
    models = models_of(store)
    plans = []
    for key in run.keys:
        with run.attempt(key):
            require_snapshot(store.warehouse, "rubric_responses", RUBRIC_SPACE, [key], config.snapshot)
            plans.append(_plan(store, models, config, key))
    conversations = [one for plan in plans for one in plan.conversations]
    specs = list({one.model.variant: one.model for one in conversations}.values())
    with asking(context, store, config, specs, Counter(one.model.name for one in conversations)) as ask:
        for group in groups(plans, [len(plan.conversations) for plan in plans], AT_A_TIME):
            _answer(run, store, config, group, ask)
    return run.result()


def _plan(store: Store, models: Models, config: ResponsesConfig, key: str) -> _Plan:
    at = RUBRIC_SPACE.levels(key)
    prompts = store.warehouse.read("rubric_prompts", **at)
    of_file = store.warehouse.read("rubric_blueprints", columns=["models"], **at)["models"][0].as_py()
    found = store.warehouse.read_or_empty("rubric_findings", columns=["code"], **at)["code"].to_pylist()
    candidates = Candidates(models, chosen_selectors(config.models, key, of_file, found))
    told = list(scripts(prompts))
    conversations = [
        Conversation(script, spec, draw, config.snapshot)
        for script, temperatures in told
        for spec in candidates.at(temperatures)
        for draw in range(config.draws)
    ]
    asked = [(script.prompt, script.system_index, script.asked_hash) for script, _ in told]
    return _Plan(key, conversations, asked)


def _answer(run: PartitionRun, store: Store, config: ResponsesConfig, group: Sequence[_Plan], ask: Ask) -> None:
    played = iter(play([one for plan in group for one in plan.conversations], ask, store.responses.responses))
    for plan in group:
        came = [next(played) for _ in plan.conversations]
        at = {**RUBRIC_SPACE.levels(plan.key), "snapshot": config.snapshot}
        with run.attempt(plan.key), store.writing("rubric_responses", [plan.key]):
            new = response_rows(plan.key, plan.conversations, came)
            earlier = store.warehouse.read_earlier("rubric_responses", **at)
            rows = merged_responses(RUBRIC_RESPONSES.empty_table() if earlier is None else earlier, new, plan.asked)
            store.warehouse.write("rubric_responses", rows, **at)
            run.done(plan.key, _metadata(rows, config.snapshot), content_version(rows))


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["status"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "models": dg.MetadataValue.json(pc.unique(rows["model"]).to_pylist()),
        "statuses": dg.MetadataValue.json(statuses),
        "cut": pc.sum(pc.cast(rows["cut"], pa.int64())).as_py() or 0,
        "tokens": (pc.sum(rows["prompt_tokens"]).as_py() or 0) + (pc.sum(rows["completion_tokens"]).as_py() or 0),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        "preview": markdown(rows, ["prompt", "model", "temperature", "system_index", "status", "text"]),
    }


@asset_check(asset=rubric_responses, blocking=True)
def rubric_responses_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No response counts twice: a draw of a prompt by a model variant with one system prompt has one row per snapshot."""
    return keys_repeated(context, store, "rubric_responses", [*RUBRIC_RESPONSE, "snapshot"])


@asset_check(asset=rubric_responses)
def rubric_calls_succeed(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which more than 1 % of the conversations failed for good; a rerun asks those again."""
    return models_that_failed(context, store, "rubric_responses", "status", "conversations")
