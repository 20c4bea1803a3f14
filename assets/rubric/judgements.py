"""Stage 3 of the rubric family: `rubric_judgements`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.responses import rubric_responses
from assets.stage.asked import RolesConfig, asking, groups, made_at_once, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import in_windows, play, play_by_key
from dtef_pipeline.asking.models import Models
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.judge_requests import Judging, chosen_judges, judged_criteria, judgement_rows, judgings
from dtef_pipeline.rubric.space import RUBRIC_POINT, RUBRIC_RESPONSE, RUBRIC_SPACE
from dtef_pipeline.rubric.tables import RUBRIC_JUDGEMENTS

JUDGED_AT_A_TIME = 5_000
"""Judgements that are held in memory while they are asked for."""
READ_BY_A_JUDGE = 0.95
"""Share of a judge's replies that must be readable, lest the check warns."""


class JudgementsConfig(RolesConfig):
    """Who judges."""

    judges: list[str] = Field(
        default=[],
        description="APPROACH=MODEL each, where the approach is standard, prompt-aware or holistic; none: those that the blueprint names, "
        "else standard and prompt-aware with the models of the collection `judges`.",
    )
    judge_draws: int = Field(default=1, ge=1, description="Repeated judgements of each criterion by each judge.")
    scale: int = Field(default=USUAL_SCALE, description="Classes that judges choose from: 5, or upstream's 10.")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be judged of a blueprint, by number alone: its judgements are made when their turn comes."""

    key: str
    judges: tuple[JudgeConfig, ...]
    each: int
    """Judgements of each judge."""


@dg.asset(
    deps=[rubric_responses],
    **{**stage(RUBRIC_BLUEPRINT, 3, "rubric_judgements", code_version="1", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_judgements(context: dg.AssetExecutionContext, config: JudgementsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What judges said: one row per (response, criterion in words, judge, draw) with the class, the judge's reflection and its raw replies.

    A judgement is a request like any other: it is stored under its own key and never asked twice, so an edited criterion is judged anew and
    no other. A reply that cannot be read is asked for once more; if that cannot be read either, the judgement is null with a reason, never 0.
    """
    run = PartitionRun(context, store)
    models = models_of(store)
    plans = []
    for key in run.keys:
        with run.attempt(key):
            plans.append(_plan(store, models, config, key))
    specs = list({one.model.variant: one.model for plan in plans for one in plan.judges}.values())
    expected: Counter[str] = Counter()
    for plan in plans:
        expected.update({name: times * plan.each for name, times in Counter(one.model.name for one in plan.judges).items()})
    with asking(context, store, config, specs, expected) as ask:
        for group in groups(plans, [plan.each * len(plan.judges) for plan in plans], JUDGED_AT_A_TIME):
            _judge(run, store, config, group, ask)
    return run.result()


def _plan(store: Store, models: Models, config: JudgementsConfig, key: str) -> _Plan:
    at = RUBRIC_SPACE.levels(key)
    house = store.warehouse
    criteria = house.read("rubric_criteria", columns=["prompt", "kind"], **at)
    if not pc.any(pc.equal(criteria["kind"], "text")).as_py():
        return _Plan(key, (), 0)
    of_file = house.read("rubric_blueprints", columns=["judges"], **at)["judges"][0].as_py()
    judges = chosen_judges(config.judges, of_file, models, config.scale)
    responses = house.read("rubric_responses", columns=["prompt", "status"], **at, snapshot=config.snapshot)
    return _Plan(key, judges, judged_criteria(responses, criteria) * config.judge_draws)


def _judge(run: PartitionRun, store: Store, config: JudgementsConfig, group: Sequence[_Plan], ask: Ask) -> None:
    together = made_at_once(group, partial(_judged_together, store, config, ask))
    for plan in group:
        with run.attempt(plan.key):
            rows = together.pop(plan.key, None)
            if rows is None:
                rows = _judged(plan.key, _judgings(store, config, plan), ask, store)
            store.warehouse.write("rubric_judgements", rows, **RUBRIC_SPACE.levels(plan.key), snapshot=config.snapshot)
            run.done(plan.key, _metadata(rows, config.snapshot), content_version(rows))


def _judged_together(store: Store, config: JudgementsConfig, ask: Ask, group: Sequence[_Plan]) -> dict[str, pa.Table]:
    """The rows of small blueprints, by key."""
    episodes = {plan.key: list(_judgings(store, config, plan)) for plan in group}
    played = play_by_key(episodes, ask, store.responses.responses)
    return {key: judgement_rows(key, own, played[key]) for key, own in episodes.items()}


def _judgings(store: Store, config: JudgementsConfig, plan: _Plan) -> Iterator[Judging]:
    if not plan.judges:
        return iter(())
    at = RUBRIC_SPACE.levels(plan.key)
    house = store.warehouse
    responses = house.read("rubric_responses", **at, snapshot=config.snapshot)
    criteria, prompts = house.read("rubric_criteria", **at), house.read("rubric_prompts", **at)
    return judgings(responses, criteria, prompts, plan.judges, config.judge_draws)


def _judged(key: str, episodes: Iterator[Judging], ask: Ask, store: Store) -> pa.Table:
    tables = [RUBRIC_JUDGEMENTS.empty_table()]
    for some in in_windows(episodes, JUDGED_AT_A_TIME):
        tables.append(judgement_rows(key, some, play(some, ask, store.responses.responses)))
    return pa.concat_tables(tables)


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    reasons = {row["values"] or "judged": row["counts"] for row in pc.value_counts(rows["reason"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "judges": dg.MetadataValue.json(pc.unique(rows["judge"]).to_pylist()),
        "outcomes": dg.MetadataValue.json(reasons),
        "asked_once_more": int(pc.sum(pc.cast(pc.greater(rows["attempts"], 1), pa.int64())).as_py() or 0),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        "preview": markdown(rows, ["prompt", "model", "judge", "class", "reason", "reflection"]),
    }


@asset_check(asset=rubric_judgements, blocking=True)
def rubric_judgements_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No judgement counts twice: a draw of a judge on a criterion of a response has one row per snapshot."""
    names = [*RUBRIC_RESPONSE, *RUBRIC_POINT[1:], "judge", "judge_variant", "judge_draw", "snapshot"]
    return keys_repeated(context, store, "rubric_judgements", names)


@asset_check(asset=rubric_judgements)
def rubric_judges_are_readable(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of judges of whose replies more than 5 % could not be read, also when they were asked for once more."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_judgements", ["judge", "class", "reason"]):
        checked += len(rows)
        frame = rows.to_pandas()
        replied = frame[~frame["reason"].isin(["error", "budget"])]
        read = replied["class"].notna().groupby(replied["judge"]).mean()
        offenders += [(key, f"{judge}: {share:.1%} read") for judge, share in read[read < READ_BY_A_JUDGE].items()]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
