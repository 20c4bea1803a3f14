"""The rows of `episodes`, column by column, from what was played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.asking.request import Response
from dtef_pipeline.games.contract import GameTrace
from dtef_pipeline.games.episode_items import still_true, truth_id
from dtef_pipeline.games.matches import LeaguePlan, Match
from dtef_pipeline.games.tables import EPISODES
from dtef_pipeline.games.traces import seat_counts, trace_hash, trace_json

PLAYED_EPISODE, OUT_OF_BUDGET = "played", "skipped_budget"
EPISODE_STATES = (PLAYED_EPISODE, OUT_OF_BUDGET, "error")
OWN_STEPS = ("steps", "moves")
"""What a scenario measures under these names counts in place of the moves of a seat."""
_NOTHING_ASKED = Played()
_FROM_PLAN = ("league", "scenario", "version", "snapshot", "max_turns", "truth_id")


class EpisodeColumns:
    """Columns of `episodes` that grow by one episode at a time: a league of baselines has a hundred thousand of them."""

    def __init__(self, plan: LeaguePlan, optima: Mapping[int, float | None]) -> None:
        self._plan, self._optima = plan, optima
        self._columns: dict[str, list[Any]] = {one.name: [] for one in EPISODES if one.name not in _FROM_PLAN}
        self._told: dict[int, tuple[GameTrace, str, str]] = {}

    def add(self, match: Match, trace: GameTrace, played: Played = _NOTHING_ASKED) -> None:
        """One episode more. `played`: what was asked for it, of all seats."""
        row = {**self._who(match), **self._ended(match, trace, played), **self._did(match, trace, played)}
        for name, column in self._columns.items():
            column.append(row[name])

    def table(self) -> pa.Table:
        """All of them."""
        manifest = self._plan.pack.manifest
        rows = len(self._columns["episode_id"])
        constant = {
            "league": manifest.league,
            "scenario": manifest.scenario,
            "version": manifest.version,
            "snapshot": self._plan.snapshot,
            "max_turns": manifest.turn_limit,
            "truth_id": truth_id(manifest),
        }
        arrays = [
            pa.repeat(pa.scalar(constant[one.name], one.type), rows)
            if one.name in constant
            else pa.array(self._columns[one.name], one.type)
            for one in EPISODES
        ]
        return pa.table(arrays, schema=EPISODES)

    def _who(self, match: Match) -> dict[str, Any]:
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
            "optimum": self._optima.get(item.seed),
        }

    def _ended(self, match: Match, trace: GameTrace, played: Played) -> dict[str, Any]:
        seat, result = match.item.seat, trace.result
        text, hashed = self._as_text(trace)
        return {
            "status": state_of(trace, played),
            "reason": None if result else (played.failure.message if played.failure else "it stopped before its end"),
            "outcome": result.outcomes[seat] if result else None,
            "reward": float(result.rewards[seat]) if result else None,
            "rewards": [float(one) for one in result.rewards] if result else [],
            "flags": list(result.flags) if result else [],
            "measured": [(name, *count) for name, count in sorted(trace.measured[seat].items())] if result else [],
            "trace": text,
            "trace_hash": hashed,
            "answered_at": min((one.answered_at for one in played.responses), default=None),
        }

    def _as_text(self, trace: GameTrace) -> tuple[str, str]:
        """A game of baselines is told once, though it is the episode of either seat."""
        known = self._told.get(id(trace))
        if known is None or known[0] is not trace:
            known = self._told[id(trace)] = (trace, trace_json(trace), trace_hash(trace))
        return known[1], known[2]

    def _did(self, match: Match, trace: GameTrace, played: Played) -> dict[str, Any]:
        seat = match.item.seat
        counts = seat_counts(trace, seat)
        own = next((trace.measured[seat][name] for name in OWN_STEPS if trace.measured and name in trace.measured[seat]), None)
        moves = sum(move.command is not None for move in trace.moves if move.seat == seat)
        return {
            "steps": int(own.total) if own else moves,
            "n_turns": counts.turns,
            "illegal": counts.illegal - counts.refused,
            "unparsed": counts.unparsed,
            "refused": counts.refused,
            "forfeits": int(counts.forfeited),
            "defaults": counts.by_default,
            **(_usage(own_responses(trace, played, seat)) if match.player.model else {"tokens": None, "cost_usd": None}),
        }


def state_of(trace: GameTrace, played: Played) -> str:
    """One of EPISODE_STATES."""
    if trace.result is not None:
        return PLAYED_EPISODE
    return OUT_OF_BUDGET if played.failure is not None and played.failure.status == "budget" else "error"


def own_responses(trace: GameTrace, played: Played, seat: int) -> list[Response]:
    """The responses of the player at a seat: texts stand in the trace in the order in which they were asked for."""
    seats = (move.seat for move in trace.moves if move.text is not None)
    return [response for response, writer in zip(played.responses, seats, strict=False) if writer == seat]


def merged_episodes(existing: pa.Table, new: pa.Table, plan: LeaguePlan) -> pa.Table:
    """All rows of a snapshot: the new ones, and those of earlier runs that were played by the rules of today or by another version's.

    Ordered by version, model, persona, draw and item, so that equal content gives equal bytes.
    """
    return merged_by(existing, new, plan, ("version", "model", "model_variant", "persona", "draw", "item_id"))


def merged_by(existing: pa.Table, new: pa.Table, plan: LeaguePlan, order: Sequence[str]) -> pa.Table:
    """As `merged_episodes`, of any table with `episode_id` and `truth_id`, in another order."""
    kept = still_true(existing, plan.pack.manifest, truth_id(plan.pack.manifest))
    kept = kept.filter(pc.invert(pc.is_in(kept["episode_id"], new["episode_id"].combine_chunks())))
    rows = pa.concat_tables([kept, new])
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in order]))


def _usage(responses: Iterable[Response]) -> dict[str, Any]:
    tokens, cost, is_known = 0, 0.0, True
    for one in responses:
        tokens += (one.prompt_tokens or 0) + (one.completion_tokens or 0)
        is_known = is_known and one.cost_usd is not None
        cost += one.cost_usd or 0.0
    return {"tokens": tokens, "cost_usd": cost if is_known else None}
