"""Stage 4 of the qa family: `qa_judgements`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.qa.files import DATASET_PART, QA_GROUP
from assets.qa.responses import qa_responses
from assets.stage.asked import RolesConfig, asking, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.episodes import in_windows, play
from dtef_pipeline.qa.arbiter import Arbiter, chosen_arbiter, judge_snapshot
from dtef_pipeline.qa.judged_rows import (
    JUDGED_ITEM_COLUMNS,
    JudgedItem,
    judged_items,
    judged_responses,
    judged_rows,
    skipped_rows,
    to_be_judged,
    with_other_judges,
)
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.tables import QA_JUDGEMENTS
from resources.settings import shipped

LOOKS_AT_A_TIME = 5_000
"""Judgements that are held in memory while they are asked for."""
FAILED_JUDGEMENTS = 0.02
"""Share of judgements without a score from which the check warns."""


class JudgeConfigured(RolesConfig):
    """Who judges, and for how much a day."""

    judges_file: str = Field(default="", description="YAML file with the block `arbiter`; empty: the shipped data/judges.yaml.")
    judge: str = Field(default="", description="Judge in place of the file's; `none` has nothing judged.")
    daily_budget: float | None = Field(
        default=None, ge=0, description="US dollars for judges per day (UTC), in place of the file's."
    )
    allow_unpriced: list[str] = Field(
        default=[], description="Judges that are asked under a daily budget though their price is not known."
    )

    def arbiter(self, store: Store, sample_rate: float | None = None) -> Arbiter | None:
        """The judge; None: nobody judges. `sample_rate`: in place of the file's."""
        source = Path(self.judges_file) if self.judges_file else shipped("judges.yaml")
        return chosen_arbiter(
            source, models_of(store), judge=self.judge, sample_rate=sample_rate, daily_budget=self.daily_budget
        )


class QaJudgementsConfig(JudgeConfigured):
    """Who judges how many responses, and for how much a day."""

    sample_rate: float | None = Field(
        default=None, ge=0, le=1, description="Share of the responses that is judged, in place of the file's."
    )
    rejudge: str = Field(default="", description="Have everything judged afresh, stored under this label.")


@dataclass(frozen=True, slots=True)
class _PartJudged:
    """What is judged of a part."""

    key: str
    items: Mapping[str, JudgedItem]
    responses: pa.Table
    chosen: pa.Table
    left_out: pa.Table


@dg.asset(
    deps=[qa_responses],
    **{**stage(DATASET_PART, 4, "qa_judgements", code_version="2", kinds={"litellm", "parquet"}), **QA_GROUP},
)
def qa_judgements(context: dg.AssetExecutionContext, config: QaJudgementsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What a judge said of responses that no rule can score: one row per evaluator and response, 0 to 1, with its reason and raw replies.

    A judgement is a request like any other: the same answer is never judged twice by the same judge, whatever the snapshot. A reply that cannot
    be read is asked for once more; then the judgement is null with a reason, never a middle value. Responses that are not in the sample, or over
    the budget of the day, say so. What other judges said of the same responses stays beside it. Parts that no judge scores have no rows.
    """
    run = PartitionRun(context, store)
    arbiter = config.arbiter(store, config.sample_rate)
    plans = []
    for key in run.keys:
        with run.attempt(key):
            plans.append(_planned(store, config, key, arbiter))
    asked = [plan for plan in plans if arbiter and len(plan.chosen)]
    with judging(context, store, config, arbiter, sum(len(plan.chosen) for plan in asked)) as ask:
        for plan in plans:
            at = {**QA_SPACE.levels(plan.key), "snapshot": config.snapshot}
            with run.attempt(plan.key), store.writing("qa_judgements", [plan.key]):
                new = _judged(store, config, plan, arbiter, ask)
                earlier = store.warehouse.read_earlier("qa_judgements", **at)
                label = judge_snapshot(config.rejudge or None)
                rows = new if earlier is None else with_other_judges(earlier, new, plan.responses, arbiter, label)
                store.warehouse.write("qa_judgements", rows, **at)
                run.done(plan.key, _metadata(rows, config.snapshot), content_version(rows))
    return run.result()


def _planned(store: Store, config: QaJudgementsConfig, key: str, arbiter: Arbiter | None) -> _PartJudged:
    at = QA_SPACE.levels(key)
    items = store.warehouse.read("qa_items", columns=JUDGED_ITEM_COLUMNS, **at)
    responses = store.warehouse.read("qa_responses", **at, snapshot=config.snapshot)
    judged = judged_items(items)
    chosen, left_out = to_be_judged(responses, judged, arbiter.sample_rate if arbiter else 0.0)
    return _PartJudged(key, judged, responses, chosen, left_out)


@contextmanager
def judging(
    context: dg.AssetExecutionContext, store: Store, config: JudgeConfigured, arbiter: Arbiter | None, responses: int
) -> Iterator[Ask]:
    """Who asks the judge about so many responses, within the budget of the day."""
    if arbiter is None or not responses:
        yield lambda requests: {}
        return
    expected = {arbiter.model.name: responses * len(arbiter.evaluators)}
    with asking(
        context, store, config, [arbiter.model], expected, daily=_daily(store, arbiter), unpriced=config.allow_unpriced
    ) as ask:
        yield ask


def _daily(store: Store, arbiter: Arbiter) -> dict[str, DailyBudget]:
    if arbiter.daily_budget is None:
        return {}
    return {"judge": DailyBudget(arbiter.daily_budget, lambda: store.responses.spent("judge", _midnight()))}


def _midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _judged(store: Store, config: QaJudgementsConfig, plan: _PartJudged, arbiter: Arbiter | None, ask: Ask) -> pa.Table:
    if arbiter is None:
        return QA_JUDGEMENTS.empty_table()
    tables = [QA_JUDGEMENTS.empty_table()]
    label = judge_snapshot(config.rejudge or None)
    looks = judged_responses(plan.chosen, plan.items, arbiter, label)
    served = models_of(store).own_servers
    for some in in_windows(looks, LOOKS_AT_A_TIME):
        tables.append(judged_rows(some, play(some, ask, store.responses.responses), served))
    return pa.concat_tables([*tables, skipped_rows(plan.left_out, plan.items, arbiter, label, served)])


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    reasons = {row["values"] or "judged": row["counts"] for row in pc.value_counts(rows["reason"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "judges": dg.MetadataValue.json(pc.unique(rows["judge_model"]).to_pylist()),
        "outcomes": dg.MetadataValue.json(reasons),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        "preview": markdown(rows, ["item_id", "model", "evaluator", "score", "reason", "explanation"]),
    }


@asset_check(asset=qa_judgements, blocking=True)
def qa_judgements_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No judgement counts twice: an evaluator looks at a response once."""
    return keys_repeated(
        context, store, "qa_judgements", [*QA_RESPONSE_KEY, "evaluator", "judge_variant", "judge_snapshot", "snapshot"]
    )


@asset_check(asset=qa_judgements)
def qa_judges_answer(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns where more than 2 % of the judgements that were asked for have no score, and where a judge is of the maker of those judged."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_judgements", ["reason", "judge_model", "self_judged"]):
        asked = rows.filter(pc.invert(pc.starts_with(pc.fill_null(rows["reason"], ""), "skipped")))
        checked += len(asked)
        failed = len(asked) - asked["reason"].null_count
        if failed > FAILED_JUDGEMENTS * len(asked):
            offenders.append((key, f"{failed:,} of {len(asked):,} judgements have no score"))
        own = asked.filter(pc.fill_null(asked["self_judged"], False))
        offenders += [
            (key, f"models of the maker of their judge, {judge}") for judge in pc.unique(own["judge_model"]).to_pylist()
        ]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
