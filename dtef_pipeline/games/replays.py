"""Stored episodes played again: whether they are still what they were."""

from __future__ import annotations

from dtef_pipeline.games.episode import replay
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.traces import trace_hash, trace_of_json


def replay_fault(pack: Pack, seed: int, trace: str, stored_hash: str) -> str | None:
    """What is wrong with a stored trace; None: it plays again byte for byte."""
    try:
        again = trace_hash(replay(trace_of_json(trace), pack, seed))
    except (KeyError, TypeError, ValueError) as error:
        return f"it does not play again: {error}"
    return None if again == stored_hash else f"played again it has the hash {again} in place of {stored_hash}"
