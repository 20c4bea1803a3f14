"""The rows of `episode_turns`: every text of a model in an episode, and the request that got none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import OF_FAILURES, USAGE
from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.games.contract import GameMove, GameTrace
from dtef_pipeline.games.episode import GameEpisode
from dtef_pipeline.games.episode_rows import merged_by
from dtef_pipeline.games.matches import LeaguePlan, Match
from dtef_pipeline.games.players import Player
from dtef_pipeline.games.tables import EPISODE_TURNS

_TURN_ORDER = ("version", "model", "model_variant", "persona", "draw", "item_id", "episode_id", "turn", "attempt")


def turn_rows(
    plan: LeaguePlan, match: Match, episode: GameEpisode, trace: GameTrace, played: Played
) -> Iterator[dict[str, Any]]:
    """The rows of one episode, in the order of its texts."""
    seats = match.by_seat(plan.n_seats)
    told = _of_episode(plan, match)
    texts = Counter[tuple[int, int]]()
    written = (move for move in trace.moves if move.text is not None)
    for move, response, reaction in zip(written, played.responses, episode.reactions(), strict=False):
        attempt = texts[move.turn, move.seat]
        texts[move.turn, move.seat] += 1
        yield {
            **told,
            **_place(match, seats[move.seat], move.seat, move.turn, attempt),
            **_came(response),
            **_made_of(move, reaction),
        }
    if played.failure is not None and (request := episode.next(played.responses)) is not None:
        seat, turn = episode.seat or 0, episode.turn
        place = _place(match, seats[seat], seat, turn, texts[turn, seat])
        yield {**told, **place, **_failed(request, played.failure)}


def turn_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """EPISODE_TURNS of rows as of `turn_rows`; what a row does not name is null."""
    return pa.table([pa.array([row.get(one.name) for row in rows], one.type) for one in EPISODE_TURNS], schema=EPISODE_TURNS)


def merged_turns(existing: pa.Table, new: pa.Table, plan: LeaguePlan, episodes: pa.Table) -> pa.Table:
    """All rows of a snapshot: the new ones, and those of earlier runs whose episode is still in `episodes`, the table as it is written.

    Usage stands once per request, at the first row: a game of two models is the episode of either.
    """
    truths = dict(zip(episodes["episode_id"].to_pylist(), episodes["truth_id"].to_pylist(), strict=True))
    rows = []
    for table in (existing, new):
        truth = pa.array([truths.get(one) for one in table["episode_id"].to_pylist()], pa.string())
        rows.append(table.append_column("truth_id", truth).filter(pc.is_valid(truth)))
    merged = merged_by(rows[0], rows[1], plan, _TURN_ORDER).drop_columns(["truth_id"])
    first = np.zeros(len(merged), dtype=bool)
    first[np.unique(merged["request_key"].to_numpy(), return_index=True)[1]] = True
    answered = pc.equal(merged["call_status"], "answered")
    for name in USAGE:
        again = pc.and_(pa.array(~first), pc.or_(answered, pc.is_valid(merged[name])))
        column = pc.if_else(again, pa.scalar(0, merged[name].type), merged[name])
        merged = merged.set_column(merged.schema.get_field_index(name), name, column)
    return merged.cast(EPISODE_TURNS)


def _of_episode(plan: LeaguePlan, match: Match) -> dict[str, Any]:
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


def _place(match: Match, player: Player, seat: int, turn: int, attempt: int) -> dict[str, Any]:
    assert player.model is not None, "a baseline writes nothing"
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


def _came(response: Response) -> dict[str, Any]:
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


def _failed(request: Request, failure: Failure) -> dict[str, Any]:
    return {
        "prompt_id": request.prompt_id,
        "request_key": request.key,
        "call_status": failure.status,
        "error": failure.message,
        **{name: getattr(failure, name) for name in OF_FAILURES},
    }


def _made_of(move: GameMove, reaction: str) -> dict[str, Any]:
    return {
        "plan": move.plan,
        "action": move.command,
        "reaction": reaction,
        "legal": move.illegal is None,
        "illegal_kind": move.illegal.kind if move.illegal else None,
        "illegal_reason": move.illegal.reason if move.illegal else None,
    }
