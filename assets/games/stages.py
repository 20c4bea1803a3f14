"""Stages of the games family. They read scenarios and personas from files and the store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.stage_assets import stage_assets
from assets.games.game_catalog import find_scenario_version, load_known_personas, load_known_scenarios
from assets.stage.file_notes import list_partitions
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.stage import (
    Check,
    EpisodePlan,
    Inputs,
    Lengths,
    Replies,
    Stage,
    Tables,
    make_failure_check,
    make_uniqueness_check,
)
from dtef_pipeline.games.entrants import list_player_models, plan_league, resolve_entrants, select_game_items
from dtef_pipeline.games.episode import (
    EpisodeTextLimit,
    LeaguePlan,
    MatchPlayed,
    check_replay,
    play_baselines,
    write_legal_text,
)
from dtef_pipeline.games.episode_items import build_game_prompt_rows, build_item_rows
from dtef_pipeline.games.episode_rows import (
    EpisodeColumns,
    build_turn_table,
    compute_episode_scores,
    iterate_turn_rows,
    merge_episode_scores,
    merge_episodes,
    merge_turns,
)
from dtef_pipeline.games.pack_files import check_metric_weights
from dtef_pipeline.games.packs import Pack, name_failing_adapters, pack
from dtef_pipeline.games.personas import require_approved
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, GamesSettings
from dtef_pipeline.games.tables import LEAGUE_SPACE

REPLAYED_EPISODES = 20
"""Number of episodes of a partition that the check replays."""


def _load_pack(inputs: Inputs, versions: Mapping[str, int]) -> Pack:
    """Load the pack of a partition, in the version in `versions`, else in the version in play. Raises ConfigError if there is none."""
    key, settings = inputs.key, inputs.outside.settings
    if key in versions:
        return pack(key, {key: find_scenario_version(settings, key, versions[key])})
    return pack(key, load_known_scenarios(settings))


def add_scenarios(instance: dg.DagsterInstance, names: Sequence[str]) -> None:
    """Register scenarios as partitions. Repeating it changes nothing."""
    known_names = set(list_partitions(instance, LEAGUE_SPACE))
    if new := [name for name in names if name not in known_names]:
        instance.add_dynamic_partitions(LEAGUE_SPACE.name, new)


def make_items(inputs: Inputs, settings: GamesSettings) -> Tables:
    """Make the items of a scenario, and keep those of earlier runs."""
    game = _load_pack(inputs, settings.scenario_versions)
    return {"scenario_items": build_item_rows(game, select_game_items(game, settings), inputs.earlier("scenario_items"))}


GAMES_ITEMS_STAGE = Stage(
    "scenario_items",
    """Items of a scenario: one row per game to play, with its seed, the seat of the player under test, and its opponent.

    Every seed is played in all seats, so that both sides have the same luck with the deal; a seed is a cluster.
    Items of earlier runs are kept as long as settings and limits are unchanged.""",
    make_items,
    settings=GAMES_STAGE_SETTINGS["scenario_items"],
    is_exclusive=True,
    context=name_failing_adapters,
    checks=(make_uniqueness_check("scenario_items", ("version", "item_id")),),
    preview=("item_id", "seed", "seat", "opponent"),
    verb="ingest",
)


def make_prompts(inputs: Inputs, settings: GamesSettings) -> Tables:
    """Make the prompts that models get before their first text, and keep those of earlier runs."""
    game = _load_pack(inputs, settings.scenario_versions)
    personas = load_known_personas(inputs.outside.settings, settings.persona_versions)
    players = resolve_entrants(game, inputs.models, personas, settings.players, settings.personas)
    earlier = inputs.earlier("episode_prompts")
    return {"episode_prompts": build_game_prompt_rows(game, select_game_items(game, settings), players, earlier)}


GAMES_PROMPTS_STAGE = Stage(
    "episode_prompts",
    """Prompts that models get before their first text: one row per item and persona of a model, with the messages and their hash.

    The system message holds the persona, the rules and the format of a reply. The other message holds only what the seat sees of the deal. A
    seat that does not move first gets further messages when its turn comes. Baselines get no messages, and have no rows.""",
    make_prompts,
    after=("scenario_items",),
    settings=GAMES_STAGE_SETTINGS["episode_prompts"],
    is_exclusive=True,
    context=name_failing_adapters,
    checks=(make_uniqueness_check("episode_prompts", ("version", "item_id", "persona")),),
    preview=("item_id", "persona", "prompt_id", "messages"),
    verb="prompt",
)


@dataclass(frozen=True)
class _League:
    """The matches to play in a scenario."""

    inputs: Inputs
    plan: LeaguePlan

    def episodes(self) -> Iterator[MatchPlayed]:
        """Return the episodes with a model."""
        return (MatchPlayed(match, self.plan.episode(match)) for match in self.plan.matches() if not match.needs_no_model)

    def rows(self, games: Sequence[MatchPlayed], outcomes: Sequence[EpisodeResult]) -> Tables:
        columns, turns = EpisodeColumns(self.plan), list[dict[str, Any]]()
        for game, outcome in zip(games, outcomes, strict=True):
            game.episode.next(outcome.responses)
            trace = game.episode.trace()
            columns.add(game.match, trace, outcome)
            turns += iterate_turn_rows(self.plan, game.match, game.episode, trace, outcome)
        return {"episodes": columns.table(), "episode_turns": build_turn_table(turns)}

    def merge_with_stored(self, new: Tables) -> Tables:
        """Return the new rows, the games of baselines, and those of earlier runs under the same rules."""
        episodes = pa.concat_tables([self._play_baselines(), new["episodes"]])
        rows = merge_episodes(self.inputs.earlier("episodes"), episodes, self.plan)
        turns = merge_turns(self.inputs.earlier("episode_turns"), new["episode_turns"], self.plan, rows)
        return {"episodes": rows, "episode_turns": turns}

    def _play_baselines(self) -> pa.Table:
        # A against B is the same game for the items of both seats.
        columns, play = EpisodeColumns(self.plan), cache(partial(play_baselines, self.plan.pack))
        for match in self.plan.matches():
            if match.needs_no_model:
                columns.add(match, play(match.item.seed, match.list_seated_players(self.plan.n_seats)))
        return columns.table()


def plan_episodes(inputs: Inputs, settings: GamesSettings) -> EpisodePlan:
    """Plan the matches of a scenario."""
    game = _load_pack(inputs, settings.scenario_versions)
    personas = load_known_personas(inputs.outside.settings, settings.persona_versions)
    check_metric_weights([game])
    plan = plan_league(game, settings, inputs.models, personas)
    if not settings.unapproved:
        require_approved(plan.all_players, ", or any persona with `unapproved: true` in the run's configuration")
    league = _League(inputs, plan)
    n_matches = sum(not match.needs_no_model for match in plan.matches())
    # The number of moves is unknown, and episodes share requests: expected are the requests known so far.
    return EpisodePlan(
        list_player_models(plan.all_players),
        {},
        n_matches,
        league.episodes,
        league.rows,
        league.merge_with_stored,
        stand_in=lambda match, request, text: write_legal_text(match.episode, request, text),
        most_calls=lambda: EpisodeTextLimit(game),
    )


def _load_known_pack(inputs: Inputs) -> Pack | None:
    """Return a partition's pack, or None if its scenario is no longer known, so that checks that need it are skipped."""
    try:
        return _load_pack(inputs, inputs.stage_config.get("scenario_versions", {}))
    except ConfigError:
        return None


def _find_nonzero_sums(inputs: Inputs, rows: pa.Table) -> Iterator[str]:
    game = _load_known_pack(inputs)
    if game is None or not game.scenario.zero_sum:
        return
    for row in rows.filter(pc.equal(rows["version"], game.manifest.version)).to_pylist():
        if abs(sum(row["rewards"])) > 1e-9:
            yield f"{row['item_id']} {row['model']}: {row['rewards']}"


def _find_differing_replays(inputs: Inputs, rows: pa.Table) -> Iterator[str]:
    if (game := _load_known_pack(inputs)) is None:
        return
    episodes = rows.filter(pc.equal(rows["version"], game.manifest.version))
    step = max(1, -(-len(episodes) // REPLAYED_EPISODES))
    for row in episodes.take(np.arange(0, len(episodes), step)).to_pylist():
        if fault := check_replay(game, int(row["cluster"]), row["trace"], row["trace_hash"]):
            yield f"{row['item_id']} {row['model']}: {fault}"


GAMES_EPISODES_STAGE = Stage(
    "episodes",
    """Episodes: one row per (item, persona, model variant, draw) of a scenario and snapshot, with outcome, reward and trace.

    Models play turn by turn, and the episodes of all scenarios of a run are played in parallel. Every response is committed to the response
    store before the next request, so a rerun continues where a run stopped and sends no request twice. An episode stopped by a budget has
    the status `skipped_budget`; its texts are kept in `episode_turns`, which has one row per text of a model, opponents included. Baselines
    make no requests.""",
    plan_episodes,
    after=("episode_prompts",),
    settings=GAMES_STAGE_SETTINGS["episodes"],
    version="2",
    asks=True,
    context=name_failing_adapters,
    checks=(
        make_uniqueness_check("episodes", ("episode_id", "snapshot")),
        make_failure_check("games_calls_succeed", "episode_turns", "call_status", "calls"),
        Check(
            "rewards_sum_to_zero",
            "In zero-sum scenarios, the rewards of all seats sum to 0 in every episode.",
            "episodes",
            ("item_id", "model", "version", "rewards"),
            _find_nonzero_sums,
            blocking=True,
        ),
        Check(
            "episodes_replay",
            "A sample of the episodes, spread over each scenario, can be replayed byte for byte.",
            "episodes",
            ("item_id", "model", "version", "cluster", "trace", "trace_hash"),
            _find_differing_replays,
            blocking=True,
        ),
    ),
    preview=("item_id", "persona", "model", "draw", "status", "outcome", "reward", "illegal"),
    counted_columns=("status", "model"),
    at_a_time=10_000,
    extra_tables=("episode_turns",),
    replies=Replies((Lengths("episode_turns"),)),
    verb="play",
)


def score_episodes(inputs: Inputs, settings: GamesSettings) -> Tables:
    """Compute the metrics of each episode."""
    game = _load_pack(inputs, settings.scenario_versions)
    new = compute_episode_scores(inputs.read("episodes"), game)
    return {"episode_scores": merge_episode_scores(inputs.earlier("episode_scores"), new, game)}


def _find_impossible_scores(_: Inputs, rows: pa.Table) -> Iterator[str]:
    outside = pc.or_(pc.less(rows["value"], 0), pc.greater(rows["value"], 1))
    silent = pc.equal(pc.is_valid(rows["value"]), pc.is_valid(rows["reason"]))
    for row in rows.filter(pc.or_(pc.and_(pc.fill_null(outside, False), rows["unit_scale"]), silent)).to_pylist():
        yield f"{row['item_id']} {row['model']} {row['metric']}: {row['value']}"


GAMES_SCORES_STAGE = Stage(
    "episode_scores",
    """Metrics of each episode: one row per episode and metric, for the seat under test, as a numerator and a denominator.

    A metric of many episodes is the sum of `numerator` over the sum of `denominator`; volatility is the standard deviation of its numerators. A
    value that was not observed is unscored with a reason, never 0. Makes no requests.""",
    score_episodes,
    after=("episodes",),
    settings=GAMES_STAGE_SETTINGS["episode_scores"],
    version="2",
    checks=(
        make_uniqueness_check("episode_scores", ("episode_id", "metric", "snapshot")),
        Check(
            "episode_scores_have_reasons",
            "A missing value has a reason, and a metric on 0-1 is within 0-1.",
            "episode_scores",
            ("item_id", "model", "metric", "unit_scale", "value", "reason"),
            _find_impossible_scores,
            blocking=True,
        ),
    ),
    preview=("item_id", "persona", "model", "metric", "status", "value", "unit", "reason"),
    counted_columns=("status", "metric"),
    verb="score",
)


GAMES_STAGES = (GAMES_ITEMS_STAGE, GAMES_PROMPTS_STAGE, GAMES_EPISODES_STAGE, GAMES_SCORES_STAGE)
games_stage_assets = stage_assets(FAMILY_BY_NAME["games"], GAMES_STAGES)
