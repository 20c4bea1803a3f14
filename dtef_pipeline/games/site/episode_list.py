"""The episodes of a scenario that its page lists, and their transcripts in files that it loads when one is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.games.contract import GameEnding, GameMove, GameTrace
from dtef_pipeline.games.episode import replay_moves
from dtef_pipeline.games.game_in_play import (
    GameInPlay,
    TextParts,
    decode_trace,
    format_units,
    split_text_parts,
    write_turn_text,
)
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.site.game_labels import format_outcome_words
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.identity import digest
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.site.content import Column, DataFile, Link, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.paths import state_address
from dtef_pipeline.text.number_words import format_count

MAX_MOVES_SHOWN, MAX_OF_A_TEXT = 400, 8_000
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
    steps, n_more = playback.steps[:MAX_MOVES_SHOWN], len(playback.steps) - MAX_MOVES_SHOWN
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
    if len(text) <= MAX_OF_A_TEXT:
        return text
    return f"{text[:MAX_OF_A_TEXT]} … ({format_count(len(text) - MAX_OF_A_TEXT, 'more character')})"


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
    before = game.pack.scenario.encode_state(game.state)
    for move in replay_moves(trace, game):
        if move.by_default:
            yield EpisodeStep(move, before)
            continue
        before = game.pack.scenario.encode_state(game.state)
        yield EpisodeStep(move, before, write_turn_text(game.pack, game.state, move.seat))


MAX_EPISODES = 200
"""Largest number of listed episodes of a scenario."""
_EPISODES_A_FILE = 20
_SHOWN_FIRST = 15
_SAMPLED_EPISODES = 2
"""Number of episodes on the page itself."""
_ID_DIGITS = 12
_EXTREME_EPISODES = 2
"""Number of best and worst episodes of each player that are always listed."""
_EPISODES_HOW = (
    "Choose an episode to follow it move by move. The table before a move shows the whole state, including what players cannot see; what "
    "a player saw is shown with its text."
)
_EPISODE_COLUMNS = (
    Column("episode", "Episode"),
    Column("player", "Player", "model", always=True),
    Column("outcome", "Outcome", always=True),
    Column("reward", "Reward", "number"),
    Column("above", "Above the mean", "signed", "Reward minus the mean of all players on the same game"),
    Column("n_turns", "Turns", "count", more=True),
    Column("illegal", "Illegal texts", "count", more=True),
    Column("noticed", "Noticed", more=True),
)


def add_above(episodes: pd.DataFrame) -> pd.DataFrame:
    """Add `above` to the episodes: their reward minus the mean of all players on the same game, in the unit of the scenario."""
    mean = episodes.groupby("item_id")["reward"].transform("mean") if len(episodes) else episodes["reward"]
    return episodes.assign(above=episodes["reward"] - mean)


def _rank_within_player(episodes: pd.DataFrame, column: str) -> pd.Series[int]:
    """Return the place of each episode among those of its player, from 1, lowest value of a column first."""
    order = episodes.sort_values(["player", column], kind="stable")
    return (order.groupby("player").cumcount() + 1).reindex(episodes.index)


def choose_listed_episodes(scenario: ScenarioResults) -> pd.DataFrame:
    """Choose the listed episodes: the best and worst of each player, then forfeited and refused ones, then random ones of each player in
    turn."""
    frame = add_above(scenario.episodes)
    if not len(frame):
        return frame
    lots = frame.assign(lot=[digest("listed", episode_id) for episode_id in frame["episode_id"]])
    place, lead, reward = (_rank_within_player(lots, name) for name in ("lot", "above", "reward"))
    size = lots.groupby("player")["lot"].transform("size")
    extreme = (lead <= _EXTREME_EPISODES) | (reward > size - _EXTREME_EPISODES)
    wrong = (frame["forfeits"] > 0) | (frame["refused"] > 0)
    order = frame.assign(group=(~extreme).astype(int) + (~extreme & ~wrong), place=place)
    sample = order.sort_values(["group", "place", "player"], kind="stable").head(MAX_EPISODES)
    return sample.sort_values(["player", "item_id", "draw"], kind="stable", ignore_index=True).drop(columns=["group", "place"])


def build_episode_link(scenario: ScenarioResults, episode_id: str, words: str) -> Link:
    """Build the link that opens the episode on the page of its scenario."""
    return Link(words, state_address(scenario.path, episode=shorten_id(episode_id)))


def shorten_id(episode_id: str) -> str:
    """Return the id of an episode in addresses."""
    return episode_id[:_ID_DIGITS]


def describe_game(scenario: ScenarioResults, row: dict[Any, Any]) -> str:
    """Return `seed 7, seat A, against nash`."""
    seats = scenario.pack.manifest.seats if scenario.pack else ()
    seat = seats[row["seat"]] if row["seat"] < len(seats) else str(row["seat"])
    parts = [f"seed {row['cluster']}", *([f"seat {seat}"] if len(seats) != 1 else [])]
    opponent = scenario.labels.opponent(row["opponent"]).removesuffix(" (baseline)")
    return ", ".join([*parts, *([f"against {opponent}"] if opponent else [])])


def build_episodes_section(scenario: ScenarioResults, episodes: pd.DataFrame) -> Section:
    """Build the list, with filters by player and outcome and the place of the opened episode."""
    rows = [_build_list_row(scenario, row) for row in convert_to_rows(episodes)]
    ids = [shorten_id(episode_id) for episode_id in episodes["episode_id"]]
    values = {
        "table": Table("Episodes", _EPISODE_COLUMNS, rows, search=True, first=_SHOWN_FIRST),
        "players": sorted(set(episodes["player"]), key=str.casefold),
        "outcomes": sorted({row["outcome"] for row in rows}),
        "files": [_build_file_path(scenario, number) for number in range(-(-len(rows) // _EPISODES_A_FILE))],
        "in_file": _EPISODES_A_FILE,
        "sample": _sample(scenario, episodes) if rows else [],
        "games": dict(zip(ids, episodes["item_id"], strict=True)),
    }
    n_episodes = len(scenario.episodes)
    note = (
        ""
        if len(rows) == n_episodes
        else f"; the list shows {len(rows):,}: the best and worst of each player, and others at random"
    )
    answer = f"{format_count(n_episodes, 'episode')} {'was' if n_episodes == 1 else 'were'} played to the end{note}."
    return Section(
        "episodes", "Episodes", [TemplateBlock("games/episodes.html.j2", values)] if rows else [], answer, _EPISODES_HOW
    )


def _sample(scenario: ScenarioResults, episodes: pd.DataFrame) -> list[dict[str, Any]]:
    """Return titled transcripts of a few episodes, chosen by their ids."""
    sample = sorted(convert_to_rows(episodes), key=lambda row: digest("without scripts", row["episode_id"]))[:_SAMPLED_EPISODES]
    traces = _read_traces(scenario, [row["episode_id"] for row in sample])
    return [
        {
            **transcript(scenario, {**row, **traces[row["episode_id"]]}),
            "title": f"{describe_game(scenario, row)} · {row['player']} · {format_outcome_words(str(row['outcome']))}",
        }
        for row in sample
    ]


def _build_list_row(scenario: ScenarioResults, row: dict[Any, Any]) -> dict[str, Any]:
    columns = ("player", "reward", "above", "n_turns", "illegal")
    return {
        **{name: row[name] for name in columns},
        "episode": build_episode_link(scenario, row["episode_id"], describe_game(scenario, row)),
        "outcome": format_outcome_words(str(row["outcome"])),
        "noticed": ", ".join(str(flag).replace("_", " ") for flag in row["flags"]),
    }


def _build_file_path(scenario: ScenarioResults, number: int) -> str:
    return f"{scenario.path.removesuffix('.html')}/episodes-{number}.js"


def build_transcript_files(scenario: ScenarioResults, episodes: pd.DataFrame) -> Iterator[DataFile]:
    """Build the transcripts of the listed episodes, in their order."""
    traces = _read_traces(scenario, episodes["episode_id"].tolist()) if len(episodes) else {}
    rows = convert_to_rows(episodes)
    for number, start in enumerate(range(0, len(rows), _EPISODES_A_FILE)):
        batch = rows[start : start + _EPISODES_A_FILE]
        texts = {shorten_id(row["episode_id"]): transcript(scenario, {**row, **traces[row["episode_id"]]}) for row in batch}
        yield DataFile(_build_file_path(scenario, number), texts)


def _read_traces(scenario: ScenarioResults, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read `trace` and `trace_hash` of each of these episodes."""
    query = (
        "SELECT episode_id, trace, trace_hash FROM episodes WHERE league = ? AND scenario = ? AND list_contains(?, episode_id)"
    )
    rows = scenario.rows.connection.execute(
        query, [scenario.key_values["league"], scenario.key_values["scenario"], list(ids)]
    ).fetchall()
    return {name: {"trace": trace, "trace_hash": trace_hash} for name, trace, trace_hash in rows}
