"""An episode for readers: each seat's view and text, the game's response, and the complete table before each move."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dtef_pipeline.games.contract import GameEnding, GameMove, GameTrace
from dtef_pipeline.games.game_in_play import ACTION_WORD, GameInPlay, decode_trace, format_units, write_turn_text
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.site.game_labels import format_outcome_words
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.quantity_words import format_count

MOST_MOVES_SHOWN, MOST_OF_A_TEXT = 400, 8_000
"""Largest number of moves of an episode, and of characters of a text."""
_MAX_STATE_CHARACTERS = 6_000
_ILLEGAL_WORDS = {"illegal": "illegal", "unparsed": "no command found", "refused": "refused"}


def transcript(scenario: ScenarioResults, row: StoredRow) -> dict[str, Any]:
    """Return the episode of a row of `episodes` with its trace, in the form for the page's script; empty values are left out."""
    trace = decode_trace(row["trace"])
    playback = follow(trace, scenario.playable, int(row["cluster"]))
    seats = _name_seats(scenario, trace, int(row["seat"]))
    players = [scenario.labels.opponent(str(row["opponent"]))] * len(seats)
    players[row["seat"]] = row["player"]
    steps, n_more = playback.steps[:MOST_MOVES_SHOWN], len(playback.steps) - MOST_MOVES_SHOWN
    return _drop_empty(
        seats=seats,
        players=players,
        moves=[_build_move(step, steps[:index]) for index, step in enumerate(steps)],
        more=f"{format_count(n_more, 'more move')} not shown; see the table `episodes`." if n_more > 0 else "",
        unknown="" if scenario.playable else "The table is not shown, because another version of the scenario is installed.",
        state=_build_state(playback.last_state),
        shown=playback.ending.public_facts if playback.ending else (),
        hidden=playback.ending.private_facts if playback.ending else (),
        results=[
            [format_outcome_words(outcome), format_units(reward, scenario.unit)]
            for outcome, reward in zip(trace.result.outcomes, trace.result.rewards, strict=True)
        ]
        if trace.result
        else (),
        flags=[flag.replace("_", " ") for flag in trace.result.flags] if trace.result else (),
        episode=row["episode_id"],
        trace=row["trace_hash"],
        snapshot=row["snapshot"],
        draw=row["draw"],
    )


def _drop_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", None, (), [], {})}


def _name_seats(scenario: ScenarioResults, trace: GameTrace, seat: int) -> list[str]:
    """Return the names of the seats."""
    if scenario.playable:
        return list(scenario.playable.manifest.seats)
    seats = [seat, *(move.seat for move in trace.moves), *(range(len(trace.result.rewards)) if trace.result else ())]
    return [f"seat {number}" for number in range(max(seats) + 1)]


def _build_move(step: EpisodeStep, before: Sequence[EpisodeStep]) -> dict[str, Any]:
    move = step.move
    parts = TextParts("", "", "", False) if move.text is None else split_text_parts(move.text, is_move=move.command is not None)
    return _drop_empty(
        turn=move.turn + 1,
        seat=move.seat,
        kind=_classify_move(move),
        state=_build_state(step.state),
        seen="" if move.text is None else _truncate_text(_find_last_reaction(move.seat, before) or step.observation),
        text=[_truncate_text(parts.plan), _truncate_text(parts.action), _truncate_text(parts.rest)]
        if move.text is not None
        else None,
        whole=_truncate_text(move.text or "") if parts.has_thinking else "",
        command=_truncate_text(move.command or ""),
        why=_truncate_text(move.illegal.reason) if move.illegal else "",
        answer=_truncate_text(step.answer),
    )


def _classify_move(move: GameMove) -> str:
    if move.by_default:
        return "made for the player"
    if move.illegal:
        return _ILLEGAL_WORDS.get(move.illegal.kind, move.illegal.kind)
    return "legal" if move.text is not None else "baseline"


def _find_last_reaction(seat: int, before: Sequence[EpisodeStep]) -> str:
    """Return the game's reply to the last text of a seat, which the seat sees next."""
    return next((step.move.reaction for step in reversed(before) if step.move.seat == seat and step.move.text is not None), "")


def _build_state(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the table without values in headings; empty for a huge one."""
    content = {name: value for name, value in (state or {}).items() if name != "to_move"}
    return content if len(json.dumps(content, ensure_ascii=False)) <= _MAX_STATE_CHARACTERS else {}


def _truncate_text(text: str) -> str:
    if len(text) <= MOST_OF_A_TEXT:
        return text
    return f"{text[:MOST_OF_A_TEXT]} … ({format_count(len(text) - MOST_OF_A_TEXT, 'more character')})"


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One move of a trace."""

    move: GameMove
    state: dict[str, Any] | None = None
    """Complete state before the move, see `Scenario.encode_state`; None: unknown."""
    observation: str = ""
    """The view of the seat before the move; empty: unknown."""
    answer: str = ""
    """For the last text of a seat: how the game ended for it."""


class EpisodeReplay(NamedTuple):
    """An episode with its steps."""

    steps: list[EpisodeStep]
    last_state: dict[str, Any] | None = None
    """None: it is not known."""
    ending: GameEnding | None = None
    """None: the episode stopped early, or its end is unknown."""


def follow(trace: GameTrace, pack: Pack | None, seed: int) -> EpisodeReplay:
    """Return the steps and the end. Without the pack, or if it cannot replay the trace, states and ending are unknown."""
    plain = EpisodeReplay([EpisodeStep(move) for move in trace.moves])
    if pack is None:
        return plain
    game = GameInPlay(pack, seed)
    try:
        steps = list(_play_again(trace, game))
        return EpisodeReplay(_add_answers(steps, game), pack.scenario.encode_state(game.state), game.ending)
    except (ValueError, KeyError, IndexError):
        return plain


def _add_answers(steps: Sequence[EpisodeStep], game: GameInPlay) -> list[EpisodeStep]:
    last = {step.move.seat: place for place, step in enumerate(steps) if step.move.text is not None}
    return [
        replace(step, answer=game.last_reaction(step.move)) if last.get(step.move.seat) == place else step
        for place, step in enumerate(steps)
    ]


def _play_again(trace: GameTrace, game: GameInPlay) -> Iterator[EpisodeStep]:
    """Replay the trace. Raises ValueError if it is of another scenario or seed."""
    scenario = game.pack.scenario
    before = scenario.encode_state(game.state)
    for move in trace.moves:
        if move.by_default:  # the game has played it already, after the text before it
            yield EpisodeStep(move, before)
            continue
        if game.seat != move.seat:
            raise ValueError(f"turn {move.turn}: the trace has seat {move.seat} move, the game seat {game.seat}")
        before = scenario.encode_state(game.state)
        yield EpisodeStep(move, before, write_turn_text(game.pack, game.state, move.seat))
        if move.text is not None:
            game.writes(move.text)
        elif move.command is not None:
            game.play_command(move.command)


@dataclass(frozen=True, slots=True)
class TextParts:
    """The parts of a text for readers."""

    plan: str
    """Text before the action."""
    action: str
    """Line that was read as the action; empty: no line."""
    rest: str
    has_thinking: bool
    """Whether the whole text has thinking, which is in none of the parts."""


def split_text_parts(text: str, *, is_move: bool) -> TextParts:
    """Split a text: its action is the last line with `ACTION:`, else, if it was played, its last line."""
    words = strip_thinking(text).strip()
    lines = words.splitlines()
    last = max((index for index, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None and is_move and lines:
        last = len(lines) - 1
    if last is None:
        return TextParts(words, "", "", words != text.strip())
    before, after = ("\n".join(part).strip() for part in (lines[:last], lines[last + 1 :]))
    return TextParts(before, lines[last].strip(), after, words != text.strip())
