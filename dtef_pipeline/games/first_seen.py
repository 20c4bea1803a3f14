"""What a seat saw when its first turn came, told again of a stored episode: by then others may have moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.opening import turn_text, usual_seating
from dtef_pipeline.games.packs import Pack, pack_if_installed
from dtef_pipeline.games.traces import trace_of_json
from dtef_pipeline.identity import digest

_FIRST_SIGHT = "first sight"


def first_seen(pack: Pack, seed: int, seat: int, trace: str) -> str:
    """What the seat was told in its first turn.

    Raises ValueError, KeyError or TypeError for a trace that the scenario does not play again.
    """
    state = pack.scenario.reset(seed, usual_seating(pack))
    for move in takewhile(lambda move: move.seat != seat, trace_of_json(trace).moves):
        if move.command is not None:
            state = pack.scenario.step(state, move.seat, move.command)
    return turn_text(pack, state, seat)


def with_first_seen(rows: Sequence[Mapping[str, Any]], manifests: Mapping[str, ScenarioManifest]) -> list[Mapping[str, Any]]:
    """Rows of `GAMES_PAIRED` whose user message is what the seat saw in its first turn, in place of what it would have seen had it begun.

    Where others moved before, the item is named by what was seen too: responses are of one item only where their players saw the same. Such
    rows are left out where the scenario is not installed in their version, or plays the trace no more: nobody could be shown what they saw.
    """
    packs: dict[str, Pack | None] = {}
    found: list[Mapping[str, Any]] = []
    for row in rows:
        name = f"{row['first']}/{row['second']}"
        if name not in packs:
            packs[name] = pack_if_installed(name, manifests)
        if (told := _told(row, packs[name])) is not None:
            found.append(told)
    return found


def _told(row: Mapping[str, Any], pack: Pack | None) -> Mapping[str, Any] | None:
    if row["trace"] is None:
        return row
    moves = trace_of_json(row["trace"]).moves
    if not moves or moves[0].seat == row["seat"]:
        return row
    if pack is None or pack.manifest.version != row["version"]:
        return None
    try:
        seen = first_seen(pack, int(row["cluster"]), row["seat"], row["trace"])
    except (KeyError, TypeError, ValueError):
        return None
    told = [*row["messages"][:-1], {"role": "user", "text": seen}]
    return {**row, "messages": told, "item_id": f"{row['item_id']} [saw {digest(_FIRST_SIGHT, seen)[:8]}]"}
