"""Stage 3 of the games family: `episodes`, and the texts of models in them, `episode_turns`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.games.known_games import known_personas
from assets.games.prompts import episode_prompts
from assets.games.scenarios import (
    GAMES_GROUP,
    LEAGUE_SCENARIO,
    EntrantsConfig,
    UnapprovedConfig,
    items_of,
    pack_of,
    refuse_unapproved,
    versions_played,
)
from assets.stage.asked import RolesConfig, asking, groups, made_at_once, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, models_that_failed, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.snapshots import require_snapshot
from assets.stage.versions import content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import Played, in_windows, play, play_by_key
from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.adapter_faults import adapters_named
from dtef_pipeline.games.entrants import entrants, models_among, opponent_named
from dtef_pipeline.games.episode import GameEpisode, replay_fault
from dtef_pipeline.games.episode_items import NO_OPPONENT
from dtef_pipeline.games.episode_rows import EpisodeColumns, merged_episodes
from dtef_pipeline.games.matches import BaselineGames, LeaguePlan, Match
from dtef_pipeline.games.pack_faults import require_weighable
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES
from dtef_pipeline.games.turn_rows import merged_turns, turn_rows, turn_table

EPISODES_AT_A_TIME = 10_000
"""Episodes of models that are played side by side, of all scenarios of a run: what a model holds up are its own episodes alone."""
REPLAYED_EPISODES = 20
"""Episodes of a partition that the check replays."""


class EpisodesConfig(RolesConfig, EntrantsConfig, UnapprovedConfig):
    """Who plays, how often, and against whom."""

    draws: int = Field(default=1, ge=1, description="Repetitions of each item by a model.")


@dataclass(frozen=True, slots=True)
class _Planned:
    key: str
    plan: LeaguePlan
    optima: Mapping[int, float | None]
    asked: Sequence[Match]
    """Those in which a model is asked."""


class _Ended(NamedTuple):
    """An episode of models, as far as it was played."""

    match: Match
    episode: GameEpisode
    played: Played


@dg.asset(
    deps=[episode_prompts],
    **{**stage(LEAGUE_SCENARIO, 3, "episodes", code_version="2", kinds={"litellm", "parquet"}), **GAMES_GROUP},
)
def episodes(context: dg.AssetExecutionContext, config: EpisodesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What was played: one row per (item, persona, model variant, draw) of a scenario and snapshot, with outcome, reward and trace.

    Models are asked turn by turn, the episodes of all scenarios of the run side by side. Every text is committed to the response store before
    the next is asked for, so a rerun continues where a run stopped and asks nothing twice. An episode whose budget ended is `skipped_budget`;
    the texts that it has are kept in `episode_turns`, which has one row per text of a model, the opponent's too. Baselines play without asking
    anybody.
    """
    run = PartitionRun(context, store)
    models, plans = models_of(store), list[_Planned]()
    for key in run.keys:
        with run.attempt(key), adapters_named():
            require_snapshot(store.warehouse, "episodes", LEAGUE_SPACE, [key], config.snapshot)
            plans.append(_planned(store, models, config, key))
    specs = models_among([one for planned in plans for one in (*planned.plan.players, *planned.plan.opponents.values())])
    # How many moves there will be is not known, and episodes share requests: what is expected is what is known so far.
    with asking(context, store, config, list({spec.variant: spec for spec in specs}.values()), {}) as ask:
        for group in groups(plans, [len(planned.asked) for planned in plans], EPISODES_AT_A_TIME):
            _play(run, store, group, ask)
    return run.result()


def _planned(store: Store, models: Models, config: EpisodesConfig, key: str) -> _Planned:
    pack = pack_of(store, key, config.scenario_versions)
    personas = known_personas(store.settings, config.persona_versions)
    require_weighable([pack])
    items = items_of(pack, config)
    players = entrants(pack, models, personas, config.players, config.personas)
    names = {item.opponent for item in items} - {NO_OPPONENT}
    opponents = {name: opponent_named(pack, models, personas, name) for name in names}
    refuse_unapproved(config, [*players, *opponents.values()])
    stored = store.warehouse.read("scenario_items", columns=["seed", "version", "optimum"], **LEAGUE_SPACE.levels(key))
    own = stored.filter(pc.equal(stored["version"], pack.manifest.version))
    optima = dict(zip(own["seed"].to_pylist(), own["optimum"].to_pylist(), strict=True))
    plan = LeaguePlan(pack, items, players, opponents, config.draws, config.snapshot)
    return _Planned(key, plan, optima, [match for match in plan.matches() if not match.asks_nobody])


def _play(run: PartitionRun, store: Store, group: Sequence[_Planned], ask: Ask) -> None:
    together = made_at_once(group, partial(_played_together, store, ask))
    for planned in group:
        with run.attempt(planned.key), adapters_named():
            ended = together.pop(planned.key, None)
            made = _rows(planned, _played_alone(planned, ask, store) if ended is None else ended)
            with store.writing("episodes", [planned.key]):
                _write(run, store, planned, *made)


def _played_together(store: Store, ask: Ask, group: Sequence[_Planned]) -> dict[str, list[_Ended]]:
    """The episodes of models of several scenarios, by key: a slow model holds up no other in the next scenario."""
    made = {one.key: [one.plan.episode(match) for match in one.asked] for one in group}
    played = play_by_key(made, ask, store.responses.responses)
    return {one.key: list(map(_Ended, one.asked, made[one.key], played[one.key])) for one in group}


def _played_alone(planned: _Planned, ask: Ask, store: Store) -> Iterator[_Ended]:
    for window in in_windows(planned.asked, EPISODES_AT_A_TIME):
        made = [planned.plan.episode(match) for match in window]
        yield from map(_Ended, window, made, play(made, ask, store.responses.responses))


def _rows(planned: _Planned, ended: Iterable[_Ended]) -> tuple[pa.Table, pa.Table]:
    """The new rows of both tables."""
    plan, columns, turns = planned.plan, EpisodeColumns(planned.plan, planned.optima), list[dict[str, Any]]()
    games = BaselineGames(plan.pack)
    for match in plan.matches():
        if match.asks_nobody:
            columns.add(match, games.trace(match.item.seed, match.by_seat(plan.n_seats)))
    for match, episode, came in ended:
        episode.next(came.responses)
        trace = episode.trace()
        columns.add(match, trace, came)
        turns += turn_rows(plan, match, episode, trace, came)
    return columns.table(), turn_table(turns)


def _write(run: PartitionRun, store: Store, planned: _Planned, new: pa.Table, turns: pa.Table) -> None:
    at = {**LEAGUE_SPACE.levels(planned.key), "snapshot": planned.plan.snapshot}
    earlier = store.warehouse.read_earlier("episodes", **at)
    rows = merged_episodes(EPISODES.empty_table() if earlier is None else earlier, new, planned.plan)
    before = store.warehouse.read_earlier("episode_turns", **at)
    texts = merged_turns(EPISODE_TURNS.empty_table() if before is None else before, turns, planned.plan, rows)
    store.warehouse.write("episode_turns", texts, **at)
    store.warehouse.write("episodes", rows, **at)
    run.done(planned.key, _metadata(rows, texts), content_version(rows))


def _metadata(rows: pa.Table, texts: pa.Table) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["status"]).to_pylist()}
    cost = pc.sum(texts["cost_usd"]).as_py()
    return {
        "dagster/row_count": len(rows),
        "texts": len(texts),
        "statuses": dg.MetadataValue.json(statuses),
        "models": dg.MetadataValue.json(pc.unique(rows["model"]).to_pylist()),
        "tokens": (pc.sum(texts["prompt_tokens"]).as_py() or 0) + (pc.sum(texts["completion_tokens"]).as_py() or 0),
        **({} if cost is None else {"cost_usd": cost}),
        "preview": markdown(rows, ["item_id", "persona", "model", "draw", "status", "outcome", "reward", "illegal"], most=8),
    }


@asset_check(asset=episodes, blocking=True)
def episodes_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No episode counts twice: a draw of an item by a player has one row per snapshot."""
    return keys_repeated(context, store, "episodes", ["episode_id", "snapshot"])


@asset_check(asset=episodes)
def games_calls_succeed(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models for which more than 1 % of the calls failed for good; a rerun makes those again."""
    return models_that_failed(context, store, "episode_turns", "call_status", "calls")


def _pack_if_known(context: dg.AssetCheckExecutionContext, store: Store, key: str) -> Pack | None:
    """The pack of a partition; None: its scenario is not known any more, so nothing can be checked by it."""
    try:
        return pack_of(store, key, versions_played(context))
    except ConfigError:
        return None


@asset_check(asset=episodes, blocking=True)
def rewards_sum_to_zero(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """In a scenario that says so, the rewards of all seats sum to 0 in every episode."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "episodes", ["item_id", "model", "version", "rewards"]):
        if (pack := _pack_if_known(context, store, key)) is None:
            continue
        if not pack.scenario.zero_sum:
            continue
        own = rows.filter(pc.equal(rows["version"], pack.manifest.version))
        checked += len(own)
        for row in own.to_pylist():
            if abs(sum(row["rewards"])) > 1e-9:
                offenders.append((key, f"{row['item_id']} {row['model']}: {row['rewards']}"))
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=episodes, blocking=True)
def episodes_replay(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A sample of the episodes, spread over each scenario, plays again byte for byte."""
    offenders, checked = list[Offender](), 0
    columns = ["item_id", "model", "version", "cluster", "trace", "trace_hash"]
    for key, rows in read_keys(store, "episodes", columns):
        if (pack := _pack_if_known(context, store, key)) is None:
            continue
        own = rows.filter(pc.equal(rows["version"], pack.manifest.version))
        step = max(1, -(-len(own) // REPLAYED_EPISODES))
        for row in own.take(np.arange(0, len(own), step)).to_pylist():
            checked += 1
            if fault := replay_fault(pack, int(row["cluster"]), row["trace"], row["trace_hash"]):
                offenders.append((key, f"{row['item_id']} {row['model']}: {fault}"))
    return partition_verdict(context, offenders, checked=checked)
