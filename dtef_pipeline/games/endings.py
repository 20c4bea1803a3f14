"""How an episode ended, in words: for its seats, and for people who look at it."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.games.contract import GameEnding, GameResult
from dtef_pipeline.text.counted import plural

NOT_SHOWN_TO_PLAYERS = "not shown to the players"
"""Stands at what people see of an episode and its players did not."""


def in_units(number: float, unit: str) -> str:
    """`1 chip`, `-2.5 points`. A unit that is no plural of things, such as `solved`, says nothing behind a number: `reward 1`."""
    if not unit.endswith("s"):
        return f"reward {number + 0.0:g}"
    thing = unit.removesuffix("s")
    return f"{number + 0.0:g} {thing if abs(number) == 1 else plural(thing)}"


def unit_in_words(unit: str) -> str:
    """What a reward is, behind the word Reward: `in chips`; `1 where it is solved, else 0`."""
    return f"in {unit}" if unit.endswith("s") else f"1 where it is {unit}, else 0"


def words_at_end(result: GameResult, seat: int, unit: str, ending: GameEnding) -> str:
    """What a seat learns when an episode is over: how it ended for the seat, and what is shown to all."""
    flags = f" ({', '.join(result.flags).replace('_', ' ')})" if result.flags else ""
    outcome = result.outcomes[seat].replace("_", " ")
    return "\n".join([f"The game is over: {outcome}, {in_units(result.rewards[seat], unit)}{flags}", *ending.shown])


def ending_in_json(ending: GameEnding | None) -> dict[str, Any] | None:
    """The ending as JSON has it; None: the episode is not over."""
    return None if ending is None else {"shown": list(ending.shown), "hidden": list(ending.hidden)}
