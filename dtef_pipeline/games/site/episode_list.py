"""The episodes of a scenario that its page lists, and their transcripts in files that it loads when one is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.contract import GameMove, GameTrace
from dtef_pipeline.games.episode import replay_moves
from dtef_pipeline.games.game_in_play import GameInPlay, decode_trace, format_units, split_text_parts, write_turn_text
from dtef_pipeline.games.site.game_labels import format_outcome_words
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.site.content import Column, DataFile, Link, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.paths import state_address
from dtef_pipeline.text.number_words import format_count

MAX_MOVES_SHOWN, MAX_OF_A_TEXT = 400, 8_000
"""Largest number of moves of an episode, and of characters of a text."""
_MAX_STATE_CHARACTERS = 6_000


def build_transcript(scenario: ScenarioResults, row: StoredRow) -> dict[str, Any]:
    """Return the episode of a row of `episodes` with its trace, in the form for the page's script; empty values are left out."""
    trace, pack = decode_trace(row["trace"]), scenario.playable
    game = GameInPlay(pack, int(row["cluster"])) if pack else None
    try:
        views = list(_replay_views(trace, game)) if game else []
    except (ValueError, KeyError, IndexError):
        game, views = None, []
    result, ending = trace.result, game.ending if game else None
    seats = list(pack.manifest.seats) if pack else [f"seat {seat}" for seat in range(len(result.rewards) if result else 0)]
    players = [scenario.labels.opponent(row["opponent"])] * len(seats)
    players[row["seat"]] = row["player"]
    n_more = len(trace.moves) - MAX_MOVES_SHOWN
    results = zip(result.outcomes, result.rewards, strict=True) if result else ()
    return _drop_empty(
        seats=seats,
        players=players,
        moves=list(_build_moves(trace, views)),
        more=f"{format_count(n_more, 'more move')} not shown; see the table `episodes`." if n_more > 0 else "",
        unknown="" if pack else "The table is not shown, because another version of the scenario is installed.",
        state=_build_state(game.pack.scenario.encode_state(game.state)) if game else {},
        shown=ending.public_facts if ending else (),
        hidden=ending.private_facts if ending else (),
        results=[[format_outcome_words(outcome), format_units(reward, scenario.unit)] for outcome, reward in results],
        flags=[flag.replace("_", " ") for flag in result.flags] if result else (),
        episode=row["episode_id"],
        trace=row["trace_hash"],
        snapshot=row["snapshot"],
        draw=row["draw"],
    )


def _drop_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", None, (), [], {})}


def _replay_views(trace: GameTrace, game: GameInPlay) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the state before each move, and the view of its seat. Raises ValueError, KeyError or IndexError if the trace does not fit."""
    state = game.pack.scenario.encode_state(game.state)
    for move in replay_moves(trace, game):
        if move.by_default:  # the game has played it already
            yield state, ""
            continue
        state = game.pack.scenario.encode_state(game.state)
        yield state, write_turn_text(game.pack, game.state, move.seat)


def _build_moves(trace: GameTrace, views: Sequence[tuple[dict[str, Any], str]]) -> Iterator[dict[str, Any]]:
    """Yield the first moves. A player sees the game's reply to its last text, or at first the view of its seat."""
    replies = dict[int, str]()
    for index, move in enumerate(trace.moves[:MAX_MOVES_SHOWN]):
        state, view = views[index] if views else ({}, "")
        words: dict[str, Any] = {}
        if move.text is not None:
            parts = split_text_parts(move.text, is_move=move.command is not None)
            words["text"] = [_truncate_text(part) for part in (parts.plan, parts.action, parts.rest)]
            words["whole"] = _truncate_text(move.text) if parts.has_thinking else ""
            words["seen"] = _truncate_text(replies.get(move.seat) or view)
            replies[move.seat] = move.reaction
        yield _drop_empty(
            turn=move.turn + 1,
            seat=move.seat,
            kind=_classify_move(move),
            state=_build_state(state),
            command=_truncate_text(move.command or ""),
            why=_truncate_text(move.illegal.reason) if move.illegal else "",
            **words,
        )


def _classify_move(move: GameMove) -> str:
    if move.by_default:
        return "made for the player"
    if move.illegal:
        return "no command found" if move.illegal.kind == "unparsed" else move.illegal.kind
    return "legal" if move.text is not None else "baseline"


def _build_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table without values in headings; empty for a huge one."""
    content = {name: value for name, value in state.items() if name != "to_move"}
    return content if len(json.dumps(content, ensure_ascii=False)) <= _MAX_STATE_CHARACTERS else {}


def _truncate_text(text: str) -> str:
    if len(text) <= MAX_OF_A_TEXT:
        return text
    return f"{text[:MAX_OF_A_TEXT]} … ({format_count(len(text) - MAX_OF_A_TEXT, 'more character')})"


_EPISODES_A_FILE = 20
_SHOWN_FIRST = 15
_SAMPLED_EPISODES = 2
"""Number of episodes on the page itself."""
_ID_DIGITS = 12
_HOW = (
    "Choose an episode to follow it move by move. The table before a move shows the whole state, including what players cannot see; what "
    "a player saw is shown with its text."
)
EPISODE_COLUMNS = (
    Column("outcome", "Outcome", always=True),
    Column("reward", "Reward", "number"),
    Column("above", "Above the mean", "signed", "Reward minus the mean of all players on the same game"),
    Column("illegal", "Illegal texts", "count", more=True),
)
_LIST_COLUMNS = (
    Column("episode", "Episode"),
    Column("player", "Player", "model", always=True),
    *EPISODE_COLUMNS,
    Column("n_turns", "Turns", "count", more=True),
)


def describe_game(scenario: ScenarioResults, row: Mapping[Any, Any]) -> str:
    """Return `seed 7, seat A, against nash`."""
    seats = scenario.pack.manifest.seats if scenario.pack else ()
    seat = seats[row["seat"]] if row["seat"] < len(seats) else str(row["seat"])
    parts = [f"seed {row['cluster']}", *([f"seat {seat}"] if len(seats) != 1 else [])]
    opponent = scenario.labels.opponent(row["opponent"]).removesuffix(" (baseline)")
    return ", ".join([*parts, *([f"against {opponent}"] if opponent else [])])


def build_episode_rows(scenario: ScenarioResults, episodes: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table of listed episodes, each with a link that opens it on the page of the scenario."""
    rows = convert_to_rows(episodes, outcome=format_outcome_words)
    for row in rows:
        row["id"] = row["episode_id"][:_ID_DIGITS]
        row["episode"] = Link(describe_game(scenario, row), state_address(scenario.link.href, episode=row["id"]))
    return rows


def read_listed_episodes(scenario: ScenarioResults, stored: StoredRows) -> list[StoredRow]:
    """Return the rows of the listed episodes, see `build_episode_rows`, with `trace`, `trace_hash` and `id`, that in addresses."""
    listed = scenario.episodes[scenario.episodes["is_listed"]]
    if not len(listed):
        return []
    query = "SELECT episode_id, trace, trace_hash FROM episodes WHERE list_contains(?, episode_id)"
    traces = {row[0]: row[1:] for row in stored.connection.execute(query, [listed["episode_id"].tolist()]).fetchall()}
    rows = build_episode_rows(scenario, listed)
    for row in rows:
        row["trace"], row["trace_hash"] = traces[row["episode_id"]]
    return rows


def build_episodes_section(scenario: ScenarioResults, rows: Sequence[StoredRow]) -> Section:
    """Build the list of `read_listed_episodes`, with filters by player and outcome and the place of the opened episode."""
    sample = sorted(rows, key=lambda row: str(row["id"]))[:_SAMPLED_EPISODES]
    values = {
        "table": Table("Episodes", _LIST_COLUMNS, rows, search=True, first=_SHOWN_FIRST),
        "files": [_build_file_path(scenario, start) for start in range(0, len(rows), _EPISODES_A_FILE)],
        "in_file": _EPISODES_A_FILE,
        "sample": [
            build_transcript(scenario, row) | {"title": f"{row['episode'].text} · {row['player']} · {row['outcome']}"}
            for row in sample
        ],
        "games": {row["id"]: row["item_id"] for row in rows},
    }
    n, n_models = len(scenario.episodes), (~scenario.players["is_reference"]).sum()
    rest = "those on which models differ most" if n_models > 1 else "a sample of the others"
    others = f"; the list shows {len(rows):,}: the best and worst of each player, and {rest}" if len(rows) < n else ""
    answer = f"{format_count(n, 'episode')} {'was' if n == 1 else 'were'} played to the end{others}."
    blocks = [TemplateBlock("games/episodes.html.j2", values)] if rows else []
    return Section("episodes", "Episodes", blocks, answer, _HOW)


def build_transcript_files(scenario: ScenarioResults, rows: Sequence[StoredRow]) -> Iterator[DataFile]:
    """Build the transcripts of the listed episodes, in their order."""
    for start in range(0, len(rows), _EPISODES_A_FILE):
        batch = rows[start : start + _EPISODES_A_FILE]
        yield DataFile(_build_file_path(scenario, start), {row["id"]: build_transcript(scenario, row) for row in batch})


def _build_file_path(scenario: ScenarioResults, start: int) -> str:
    return f"{scenario.link.href.removesuffix('.html')}/episodes-{start // _EPISODES_A_FILE}.js"
