"""The rows of `episodes`, built column by column from traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import OF_FAILURES, USAGE
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.games.contract import GameMove, GameTrace
from dtef_pipeline.games.episode import GameEpisode, LeaguePlan, Match
from dtef_pipeline.games.episode_items import filter_still_valid, truth_id
from dtef_pipeline.games.game_in_play import count_seat, encode_trace, hash_trace
from dtef_pipeline.games.personas import Player
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES

PLAYED_EPISODE, OUT_OF_BUDGET = "played", "skipped_budget"
_NO_REQUESTS = EpisodeResult()
_FROM_PLAN = ("league", "scenario", "version", "snapshot", "truth_id")


class EpisodeColumns:
    """Columns of `episodes` to which episodes are added one by one: a league of baselines has a hundred thousand of them."""

    def __init__(self, plan: LeaguePlan) -> None:
        self._plan = plan
        self._columns: dict[str, list[Any]] = {column.name: [] for column in EPISODES if column.name not in _FROM_PLAN}
        self._serialized: dict[int, tuple[GameTrace, str, str]] = {}

    def add(self, match: Match, trace: GameTrace, play: EpisodeResult = _NO_REQUESTS) -> None:
        """Add one episode. `play`: its requests and responses, of all seats."""
        row = {
            **self._describe_players(match),
            **self._describe_result(match, trace, play),
            **self._count_moves(match, trace, play),
        }
        for name, column in self._columns.items():
            column.append(row[name])

    def table(self) -> pa.Table:
        """Return the table of all rows."""
        manifest = self._plan.pack.manifest
        rows = len(self._columns["episode_id"])
        constant = {
            "league": manifest.league,
            "scenario": manifest.scenario,
            "version": manifest.version,
            "snapshot": self._plan.snapshot,
            "truth_id": truth_id(manifest),
        }
        arrays = [
            pa.repeat(pa.scalar(constant[column.name], column.type), rows)
            if column.name in constant
            else pa.array(self._columns[column.name], column.type)
            for column in EPISODES
        ]
        return pa.table(arrays, schema=EPISODES)

    def _describe_players(self, match: Match) -> dict[str, Any]:
        item, player = match.item, match.player
        return {
            "episode_id": self._plan.episode_id(match),
            "item_id": item.item_id,
            "persona": player.persona_name,
            "model": player.model_name,
            "model_variant": player.variant,
            "temperature": player.model.temperature if player.model else None,
            "draw": match.draw,
            "opponent": item.opponent,
            "cluster": str(item.seed),
            "seat": item.seat,
        }

    def _describe_result(self, match: Match, trace: GameTrace, play: EpisodeResult) -> dict[str, Any]:
        seat, result = match.item.seat, trace.result
        is_stopped = play.failure is not None and play.failure.status == "budget"
        status = PLAYED_EPISODE if result else OUT_OF_BUDGET if is_stopped else "error"
        text, trace_hash = self._serialize_trace(trace)
        return {
            "status": status,
            "reason": None if result else (play.failure.message if play.failure else "it stopped before its end"),
            "outcome": result.outcomes[seat] if result else None,
            "reward": float(result.rewards[seat]) if result else None,
            "rewards": [float(reward) for reward in result.rewards] if result else [],
            "flags": list(result.flags) if result else [],
            "metric_counts": [(name, *count) for name, count in sorted(trace.metric_counts[seat].items())] if result else [],
            "trace": text,
            "trace_hash": trace_hash,
            "answered_at": min((response.answered_at for response in play.responses), default=None),
        }

    def _serialize_trace(self, trace: GameTrace) -> tuple[str, str]:
        """Return a trace as JSON with its hash. A game of baselines is serialized only once, although it is an episode of each seat."""
        entry = self._serialized.get(id(trace))
        if entry is None or entry[0] is not trace:
            entry = self._serialized[id(trace)] = (trace, encode_trace(trace), hash_trace(trace))
        return entry[1], entry[2]

    def _count_moves(self, match: Match, trace: GameTrace, play: EpisodeResult) -> dict[str, Any]:
        seat = match.item.seat
        counts = count_seat(trace, seat)
        writers = (move.seat for move in trace.moves if move.text is not None)  # in the order of the responses
        return {
            "n_turns": counts.turns,
            "illegal": counts.illegal - counts.refused,
            "unparsed": counts.unparsed,
            "refused": counts.refused,
            "forfeits": int(counts.forfeited),
            "defaults": counts.n_default,
            **(
                _sum_usage_of_responses(
                    response for response, writer in zip(play.responses, writers, strict=False) if writer == seat
                )
                if match.player.model
                else {"tokens": None, "cost_usd": None}
            ),
        }


def merge_episodes(existing: pa.Table, new: pa.Table, plan: LeaguePlan) -> pa.Table:
    """Return all rows of a snapshot: the new ones, and those of earlier runs under the present rules or of another version.

    Ordered by version, model, persona, draw and item, so that equal content gives equal bytes.
    """
    return merge_rows_by(existing, new, plan, ("version", "model", "model_variant", "persona", "draw", "item_id"))


def merge_rows_by(existing: pa.Table, new: pa.Table, plan: LeaguePlan, order: Sequence[str]) -> pa.Table:
    """Merge any tables with `episode_id` and `truth_id` like `merge_episodes`, sorted by `order`."""
    old = filter_still_valid(existing, plan.pack.manifest, truth_id(plan.pack.manifest))
    old = old.filter(pc.invert(pc.is_in(old["episode_id"], new["episode_id"].combine_chunks())))
    rows = pa.concat_tables([old, new])
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in order]))


def _sum_usage_of_responses(responses: Iterable[Response]) -> dict[str, Any]:
    tokens, cost, is_known = 0, 0.0, True
    for response in responses:
        tokens += (response.prompt_tokens or 0) + (response.completion_tokens or 0)
        is_known = is_known and response.cost_usd is not None
        cost += response.cost_usd or 0.0
    return {"tokens": tokens, "cost_usd": cost if is_known else None}


_TURN_ORDER = ("version", "model", "model_variant", "persona", "draw", "item_id", "episode_id", "turn", "attempt")


def iterate_turn_rows(
    plan: LeaguePlan, match: Match, episode: GameEpisode, trace: GameTrace, play: EpisodeResult
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one episode, in the order of its texts."""
    seats = match.list_seated_players(plan.n_seats)
    episode_columns = _identify_episode(plan, match)
    texts = Counter[tuple[int, int]]()
    text_moves = (move for move in trace.moves if move.text is not None)
    for move, response, reaction in zip(text_moves, play.responses, episode.list_reactions(), strict=False):
        attempt = texts[move.turn, move.seat]
        texts[move.turn, move.seat] += 1
        yield {
            **episode_columns,
            **_locate_turn(match, seats[move.seat], move.seat, move.turn, attempt),
            **_describe_turn_response(response),
            **_describe_game_move(move, reaction),
        }
    if play.failure is not None and (request := episode.next(play.responses)) is not None:
        seat, turn = episode.seat or 0, episode.turn
        place = _locate_turn(match, seats[seat], seat, turn, texts[turn, seat])
        yield {**episode_columns, **place, **_describe_failed_request(request, play.failure)}


def build_turn_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Build EPISODE_TURNS from rows of `iterate_turn_rows`; missing values are null."""
    return pa.table([pa.array([row.get(item.name) for row in rows], item.type) for item in EPISODE_TURNS], schema=EPISODE_TURNS)


def merge_turns(existing: pa.Table, new: pa.Table, plan: LeaguePlan, episodes: pa.Table) -> pa.Table:
    """Return all rows of a snapshot: the new ones, and those of earlier runs whose episode is still in `episodes`, the table as it is
    written.

    Usage is counted once per request, at its first row, because a game of two models is an episode of both.
    """
    truths = dict(zip(episodes["episode_id"].to_pylist(), episodes["truth_id"].to_pylist(), strict=True))
    rows = []
    for table in (existing, new):
        truth = pa.array([truths.get(episode_id) for episode_id in table["episode_id"].to_pylist()], pa.string())
        rows.append(table.append_column("truth_id", truth).filter(pc.is_valid(truth)))
    turns = merge_rows_by(rows[0], rows[1], plan, _TURN_ORDER).drop_columns(["truth_id"])
    first = np.zeros(len(turns), dtype=bool)
    first[np.unique(turns["request_key"].to_numpy(), return_index=True)[1]] = True
    is_answered = pc.equal(turns["call_status"], "answered")
    for name in USAGE:
        repeats = pc.and_(pa.array(~first), pc.or_(is_answered, pc.is_valid(turns[name])))
        column = pc.if_else(repeats, pa.scalar(0, turns[name].type), turns[name])
        turns = turns.set_column(turns.schema.get_field_index(name), name, column)
    return turns.cast(EPISODE_TURNS)


def _identify_episode(plan: LeaguePlan, match: Match) -> dict[str, Any]:
    manifest = plan.pack.manifest
    return {
        "league": manifest.league,
        "scenario": manifest.scenario,
        "version": manifest.version,
        "episode_id": plan.episode_id(match),
        "item_id": match.item.item_id,
        "cluster": str(match.item.seed),
        "snapshot": plan.snapshot,
    }


def _locate_turn(match: Match, player: Player, seat: int, turn: int, attempt: int) -> dict[str, Any]:
    assert player.model is not None, "a baseline writes no texts"
    return {
        "persona": player.persona_name,
        "seat": seat,
        "under_test": seat == match.item.seat,
        "turn": turn,
        "attempt": attempt,
        "model": player.model_name,
        "model_variant": player.variant,
        "temperature": player.model.temperature,
        "draw": match.draw,
    }


def _describe_turn_response(response: Response) -> dict[str, Any]:
    return {
        "prompt_id": response.prompt_id,
        "request_key": response.request_key,
        "call_status": "answered",
        "response": response.text,
        "finish_reason": response.finish_reason,
        "served_model": response.served_model,
        "fingerprint": response.fingerprint,
        **{name: getattr(response, name) for name in USAGE},
        "latency_s": response.latency_s,
        "attempts": response.attempts,
        "answered_at": response.answered_at,
    }


def _describe_failed_request(request: Request, failure: Failure) -> dict[str, Any]:
    return {
        "prompt_id": request.prompt_id,
        "request_key": request.key,
        "call_status": failure.status,
        "error": failure.message,
        **{name: getattr(failure, name) for name in OF_FAILURES},
    }


def _describe_game_move(move: GameMove, reaction: str) -> dict[str, Any]:
    return {"plan": move.plan, "action": move.command, "reaction": reaction, "legal": move.illegal is None}
