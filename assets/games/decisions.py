"""Decision points asked of models, `decision_answers`, and what the strategies are worth that follow, `strategy_values`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.games.known_games import known_personas
from assets.games.scenarios import GAMES_GROUP, LEAGUE_SCENARIO, UnapprovedConfig, pack_of, refuse_unapproved
from assets.stage.asked import RolesConfig, asking, groups, made_at_once, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, models_that_failed, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.snapshots import require_snapshot
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import in_windows, play, play_by_key
from dtef_pipeline.asking.models import Models
from dtef_pipeline.games.adapter_faults import adapters_named
from dtef_pipeline.games.decision_points import POINTS_AT_MOST_UNASKED, points_to_ask
from dtef_pipeline.games.decision_rows import (
    USUAL_POINT_DRAWS,
    DecisionPlan,
    answer_rows,
    answer_table,
    merged_answers,
)
from dtef_pipeline.games.entrants import entrants, models_among
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.games.strategy_values import STRATEGY_RESAMPLES, StrategyOptions, merged_values, strategy_rows
from dtef_pipeline.games.tables import DECISION_ANSWERS

POINTS_AT_A_TIME = 5_000
"""Requests that are sent together, of all scenarios of a run."""


class DecisionsConfig(RolesConfig, UnapprovedConfig):
    """Who is asked in which decision points, and how often."""

    players: list[str] = Field(
        default=[], description="Models, collections or persona@model; none: nobody is asked. Baselines are valued in any case."
    )
    personas: list[str] = Field(
        default=[], description="Ids of the personas that every model plays, or none: as itself; empty: as itself."
    )
    draws: int = Field(default=USUAL_POINT_DRAWS, ge=1, description="Repetitions of each decision point by a model.")
    sample: int | None = Field(
        default=None,
        ge=0,
        description=f"Decision points to ask, always the same ones; 0: all; none: all, or {POINTS_AT_MOST_UNASKED} where there are more.",
    )


class StrategyValuesConfig(dg.Config):
    """Which snapshot is valued, and how."""

    snapshot: str = Field(default="base", description="Label of the evaluation pass.")
    fill: str | None = Field(
        default=None,
        description="Baseline, such as nash, that plays in the decision points that nobody asked; none: values need all of them.",
    )
    resamples: int = Field(default=STRATEGY_RESAMPLES, ge=2, description="Draws anew behind each interval.")
    seed: int = Field(default=1, ge=0, description="Seed of all that is drawn.")


@dataclass(frozen=True, slots=True)
class _PlannedPoints:
    key: str
    plan: DecisionPlan


@dg.asset(
    **{
        **stage(
            LEAGUE_SCENARIO, 1, "decision_answers", code_version="2", kinds={"litellm", "parquet"}, pipeline="games_decisions"
        ),
        **GAMES_GROUP,
    }
)
def decision_answers(context: dg.AssetExecutionContext, config: DecisionsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What models do in every situation of a small game: one row per (decision point, persona, model variant, draw) and snapshot.

    A decision point is all that a seat can know when it is to move, told with the words of an episode. Kuhn poker has 12, Leduc poker 936, of
    which a sample is asked unless `sample` says otherwise. A text that is no legal command has the reason beside it. Scenarios without
    decision points have an empty table. Responses are stored before they are used: a rerun asks nothing twice.
    """
    run = PartitionRun(context, store)
    models, plans = models_of(store), list[_PlannedPoints]()
    for key in run.keys:
        with run.attempt(key), adapters_named():
            require_snapshot(store.warehouse, "decision_answers", LEAGUE_SPACE, [key], config.snapshot)
            plans.append(_PlannedPoints(key, _plan(store, models, config, key)))
    expected = Counter[str]()
    for planned in plans:
        for player in planned.plan.players:
            expected[player.model_name] += len(planned.plan.points) * config.draws
    specs = models_among([player for planned in plans for player in planned.plan.players])
    with asking(context, store, config, specs, expected) as ask:
        for group in groups(plans, [one.plan.size for one in plans], POINTS_AT_A_TIME):
            together = made_at_once(group, partial(_answered_together, store, ask))
            for planned in group:
                with run.attempt(planned.key), adapters_named():
                    new = together.pop(planned.key, None)
                    new = _answered(planned.plan, ask, store) if new is None else new
                    with store.writing("decision_answers", [planned.key]):
                        _write(run, store, planned, new)
    return run.result()


def _plan(store: Store, models: Models, config: DecisionsConfig, key: str) -> DecisionPlan:
    pack = pack_of(store, key)
    players = entrants(pack, models, known_personas(store.settings), config.players, config.personas)
    refuse_unapproved(config, players)
    points = points_to_ask(pack.scenario, config.sample)
    return DecisionPlan(pack, points, [one for one in players if one.model is not None], config.draws, config.snapshot)


def _answered_together(store: Store, ask: Ask, group: Sequence[_PlannedPoints]) -> dict[str, pa.Table]:
    """The answers of several scenarios, by key."""
    made = {one.key: list(one.plan.asked()) for one in group}
    played = play_by_key(made, ask, store.responses.responses)
    return {one.key: answer_table(list(answer_rows(one.plan, made[one.key], played[one.key]))) for one in group}


def _answered(plan: DecisionPlan, ask: Ask, store: Store) -> pa.Table:
    rows = list[dict[str, Any]]()
    for window in in_windows(plan.asked(), POINTS_AT_A_TIME):
        rows += answer_rows(plan, window, play(window, ask, store.responses.responses))
    return answer_table(rows)


def _write(run: PartitionRun, store: Store, planned: _PlannedPoints, new: pa.Table) -> None:
    at = {**LEAGUE_SPACE.levels(planned.key), "snapshot": planned.plan.snapshot}
    earlier = store.warehouse.read_earlier("decision_answers", **at)
    rows = merged_answers(DECISION_ANSWERS.empty_table() if earlier is None else earlier, new, planned.plan)
    store.warehouse.write("decision_answers", rows, **at)
    cost = pc.sum(rows["cost_usd"]).as_py()
    metadata = {
        "dagster/row_count": len(rows),
        "decision_points": len(planned.plan.points),
        "unreadable": pc.sum(pc.is_valid(rows["illegal_kind"])).as_py() or 0,
        "models": dg.MetadataValue.json(pc.unique(rows["model"]).to_pylist()),
        **({} if cost is None else {"cost_usd": cost}),
        "preview": markdown(rows, ["point", "persona", "model", "draw", "call_status", "command", "illegal_kind"], most=12),
    }
    run.done(planned.key, metadata, content_version(rows))


@dg.asset(
    deps=[decision_answers],
    **{**stage(LEAGUE_SCENARIO, 2, "strategy_values", code_version="2", pipeline="games_decisions"), **GAMES_GROUP},
)
def strategy_values(context: dg.AssetExecutionContext, config: StrategyValuesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What a player's whole strategy is worth, without the luck of cards: one row per player and quantity, baselines among them.

    From the answers in all decision points follow the exact value against each baseline and the exploitability (0 is perfect play, `scale` play
    at random). Intervals say what other draws might have given. A point where no response could be read
    makes the values null, with the reason. No model is asked.
    """
    run = PartitionRun(context, store)
    options = StrategyOptions(config.fill, config.resamples, config.seed)
    for key in run.keys:
        at = {**LEAGUE_SPACE.levels(key), "snapshot": config.snapshot}
        with run.attempt(key):
            pack = pack_of(store, key)
            new = strategy_rows(pack, store.warehouse.read("decision_answers", **at), config.snapshot, options)
            earlier = store.warehouse.read_earlier("strategy_values", **at)
            rows = merged_values(earlier, new, pack)
            store.warehouse.write("strategy_values", rows, **at)
            shown = ["persona", "model", "quantity", "opponent", "value", "low", "high", "scale", "reason"]
            metadata = {"dagster/row_count": len(rows), "preview": markdown(rows, shown, most=30)}
            run.done(key, metadata, content_version(rows))
    return run.result()


@asset_check(asset=decision_answers, blocking=True)
def decision_answers_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No draw counts twice: a draw of a decision point by a player has one row per snapshot."""
    names = ["version", "point", "persona", "model_variant", "draw", "snapshot"]
    return keys_repeated(context, store, "decision_answers", names)


@asset_check(asset=decision_answers)
def decision_calls_succeed(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which more than 1 % of the calls failed for good; a rerun makes those again."""
    return models_that_failed(context, store, "decision_answers", "call_status", "calls")


@asset_check(asset=strategy_values, blocking=True)
def strategy_values_have_reasons(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A value that is not there has a reason, and no strategy is better than perfect."""
    offenders, checked = list[Offender](), 0
    columns = ["model", "quantity", "value", "reason"]
    for key, rows in read_keys(store, "strategy_values", columns):
        checked += len(rows)
        silent = pc.and_(pc.is_null(rows["value"]), pc.is_null(rows["reason"]))
        below = pc.and_(pc.less(rows["value"], 0), pc.not_equal(rows["quantity"], "value"))
        bad = rows.filter(pc.or_(silent, pc.fill_null(below, False)))
        offenders += [(key, f"{row['model']} {row['quantity']}: {row['value']}") for row in bad.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)
