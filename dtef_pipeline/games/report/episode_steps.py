"""An episode step by step: what lay on the table before each text, what the player was told, what it wrote, and what the game made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dtef_pipeline.games.contract import GameEnding, GameMove, GameTrace
from dtef_pipeline.games.in_play import ACTION_WORD, GameInPlay
from dtef_pipeline.games.opening import turn_text
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.text.plain import without_thinking


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One move of a trace."""

    move: GameMove
    told: dict[str, Any] | None
    """The whole state before the move, as `Scenario.told`; None: it is not known."""
    seen: str
    """What the seat was told before the move: what it sees; empty: it is not known."""


class FollowedEpisode(NamedTuple):
    """An episode as it can be followed."""

    steps: list[EpisodeStep]
    told: dict[str, Any] | None = None
    """The whole last state, as `Scenario.told`; None: it is not known."""
    ending: GameEnding | None = None
    """None: the episode stopped before its end, or its end is not known."""


def episode_steps(trace: GameTrace, pack: Pack | None, seed: int) -> FollowedEpisode:
    """The steps, and the end. Without the pack, or where the trace does not play again by it, states and ending are not known."""
    plain = FollowedEpisode([EpisodeStep(move, None, "") for move in trace.moves])
    if pack is None:
        return plain
    game = GameInPlay(pack, seed)
    try:
        steps = list(_played_again(trace, game))
        return FollowedEpisode(_with_last_reactions(steps, game), pack.scenario.told(game.state), game.ending)
    except (ValueError, KeyError, IndexError):
        return plain


def _with_last_reactions(steps: Sequence[EpisodeStep], game: GameInPlay) -> list[EpisodeStep]:
    """The steps with all that each seat was told at the end: a trace has the first line of it alone."""
    last = {step.move.seat: place for place, step in enumerate(steps) if step.move.text is not None}
    return [
        replace(step, move=replace(step.move, reaction=game.last_reaction(step.move)))
        if last.get(step.move.seat) == place
        else step
        for place, step in enumerate(steps)
    ]


def _played_again(trace: GameTrace, game: GameInPlay) -> Iterator[EpisodeStep]:
    """Raises ValueError where the trace is of another scenario or seed."""
    scenario = game.pack.scenario
    before, seen = scenario.told(game.state), ""
    for move in trace.moves:
        if move.by_default:  # the game has played it already, after the text before it
            yield EpisodeStep(move, before, "")
            continue
        if game.seat != move.seat:
            raise ValueError(f"turn {move.turn}: the trace has seat {move.seat} move, the game seat {game.seat}")
        before, seen = scenario.told(game.state), turn_text(game.pack, game.state, move.seat)
        yield EpisodeStep(move, before, seen)
        if move.text is not None:
            game.writes(move.text)
        elif move.command is not None:
            game.plays(move.command)


@dataclass(frozen=True, slots=True)
class TextParts:
    """A text as people look at it."""

    plan: str
    """What stands before the action."""
    action: str
    """The line that was read as the action; empty: no line was."""
    after: str
    has_thinking: bool
    """Whether the whole text holds thinking, which is in none of the parts."""


def text_parts(text: str, *, played: bool) -> TextParts:
    """The parts of a text: its action is the last line with `ACTION:`, else, where it was played, its last line."""
    words = without_thinking(text).strip()
    lines = words.splitlines()
    last = max((at for at, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None and played and lines:
        last = len(lines) - 1
    if last is None:
        return TextParts(words, "", "", words != text.strip())
    before, after = ("\n".join(part).strip() for part in (lines[:last], lines[last + 1 :]))
    return TextParts(before, lines[last].strip(), after, words != text.strip())
