"""An episode as it was played, as canonical JSON with a hash, and what each seat's texts came to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from dtef_pipeline.games.contract import Count, GameMove, GameResult, GameTrace, Illegal
from dtef_pipeline.games.in_play import FORFEIT_FLAG


class SeatCounts(NamedTuple):
    """What one seat did in an episode."""

    turns: int
    """Turns in which it played, or had a command played for it, or forfeited, or got no further."""
    texts: int
    """Texts it wrote; a baseline writes none."""
    illegal: int
    """Texts that were no moves, whatever the reason: `unparsed` and `refused` are among them."""
    unparsed: int
    refused: int
    by_default: int
    """Commands that were played for it."""
    forfeited: bool


def trace_json(trace: GameTrace) -> str:
    """The trace as canonical JSON: equal traces give equal text, byte for byte, as UTF-8."""
    return json.dumps(_plain(trace), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def trace_hash(trace: GameTrace) -> str:
    """32 hexadecimal digits of the SHA-256 of `trace_json`."""
    return hashlib.sha256(trace_json(trace).encode()).hexdigest()[:32]


def trace_of_json(text: str) -> GameTrace:
    """The trace that `trace_json` wrote."""
    given = json.loads(text)
    result = given["result"]
    return GameTrace(
        moves=tuple(_move(one) for one in given["moves"]),
        result=GameResult(**{name: tuple(values) for name, values in result.items()}) if result else None,
        measured=tuple({name: Count(*count) for name, count in one.items()} for one in given["measured"]),
    )


def seat_counts(trace: GameTrace, seat: int) -> SeatCounts:
    """What a seat did in an episode that was played, to its end or not."""
    moves = [move for move in trace.moves if move.seat == seat]
    kinds = [move.illegal.kind for move in moves if move.illegal]
    ended = trace.result is not None and FORFEIT_FLAG in trace.result.flags
    return SeatCounts(
        turns=len({move.turn for move in moves}),
        texts=sum(move.text is not None for move in moves),
        illegal=len(kinds),
        unparsed=kinds.count("unparsed"),
        refused=kinds.count("refused"),
        by_default=sum(move.by_default for move in moves),
        forfeited=ended and trace.moves[-1].seat == seat and trace.moves[-1].command is None,
    )


def _plain(trace: GameTrace) -> dict[str, Any]:
    return {
        "moves": [asdict(move) for move in trace.moves],
        "result": asdict(trace.result) if trace.result else None,
        "measured": [{name: list(count) for name, count in one.items()} for one in trace.measured],
    }


def _move(given: Mapping[str, Any]) -> GameMove:
    illegal = given["illegal"]
    return GameMove(**{**given, "illegal": Illegal(**illegal) if illegal else None})
