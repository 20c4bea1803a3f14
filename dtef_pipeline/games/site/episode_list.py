"""The episodes of a scenario that its page lists, and their transcripts in files that it loads when one is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.site.game_labels import format_outcome_words
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.games.site.transcript import transcript
from dtef_pipeline.identity import digest
from dtef_pipeline.site.content import Column, DataFile, Link, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.paths import state_address
from dtef_pipeline.text.quantity_words import format_count

MOST_EPISODES = 200
"""Episodes of a scenario that are listed."""
_EPISODES_A_FILE = 20
_SHOWN_FIRST = 15
_SAMPLED_EPISODES = 2
"""Episodes that stand on the page itself."""
_ID_DIGITS = 12
_EXTREME_EPISODES = 2
"""Best and worst episodes of each player that are always listed."""
_EPISODES_HOW = (
    "Choose an episode to follow it move by move. The table before a move shows the whole state, including what players cannot see; what a "
    "player did see stands with its text."
)
_EPISODE_COLUMNS = (
    Column("episode", "Episode"),
    Column("player", "Player", always=True),
    Column("outcome", "Outcome", always=True),
    Column("reward", "Reward", "number"),
    Column("above", "Above the mean", "signed", "Reward less the mean of all players on the same game"),
    Column("n_turns", "Turns", "count", more=True),
    Column("illegal", "Illegal texts", "count", more=True),
    Column("noticed", "Noticed", more=True),
)


def add_above(episodes: pd.DataFrame) -> pd.DataFrame:
    """The episodes with `above`: their reward less the mean of all players on the same game, in the unit of the scenario."""
    mean = episodes.groupby("item_id")["reward"].transform("mean") if len(episodes) else episodes["reward"]
    return episodes.assign(above=episodes["reward"] - mean)


def _rank_within_player(episodes: pd.DataFrame, by: str) -> pd.Series[int]:
    """The place of each episode among those of its player, from 1, the lowest of a column first."""
    ordered = episodes.sort_values(["player", by], kind="stable")
    return (ordered.groupby("player").cumcount() + 1).reindex(episodes.index)


def choose_listed_episodes(found: ScenarioResults) -> pd.DataFrame:
    """The episodes of the list: the best and worst of each player, then forfeited and refused ones, then random ones of each player in turn."""
    frame = add_above(found.episodes)
    if not len(frame):
        return frame
    drawn = frame.assign(lot=[digest("listed", one) for one in frame["episode_id"]])
    place, lead, reward = (_rank_within_player(drawn, name) for name in ("lot", "above", "reward"))
    size = drawn.groupby("player")["lot"].transform("size")
    extreme = (lead <= _EXTREME_EPISODES) | (reward > size - _EXTREME_EPISODES)
    wrong = (frame["forfeits"] > 0) | (frame["refused"] > 0)
    order = frame.assign(group=(~extreme).astype(int) + (~extreme & ~wrong), place=place)
    chosen = order.sort_values(["group", "place", "player"], kind="stable").head(MOST_EPISODES)
    return chosen.sort_values(["player", "item_id", "draw"], kind="stable", ignore_index=True).drop(columns=["group", "place"])


def build_episode_link(found: ScenarioResults, episode_id: str, words: str) -> Link:
    """Opens the episode on the page of its scenario."""
    return Link(words, state_address(found.path, episode=shorten_id(episode_id)))


def shorten_id(episode_id: str) -> str:
    """What an episode is called in addresses."""
    return episode_id[:_ID_DIGITS]


def describe_game(found: ScenarioResults, row: dict[Any, Any]) -> str:
    """`seed 7, seat A, against nash`."""
    seats = found.pack.manifest.seats if found.pack else ()
    seat = seats[row["seat"]] if row["seat"] < len(seats) else str(row["seat"])
    parts = [f"seed {row['cluster']}", *([f"seat {seat}"] if len(seats) != 1 else [])]
    opponent = found.labels.opponent(row["opponent"]).removesuffix(" (baseline)")
    return ", ".join([*parts, *([f"against {opponent}"] if opponent else [])])


def build_episodes_section(found: ScenarioResults, listed: pd.DataFrame) -> Section:
    """The list, with its choice of player and outcome and the place of the episode that is opened."""
    rows = [_build_list_row(found, row) for row in convert_to_rows(listed)]
    ids = [shorten_id(one) for one in listed["episode_id"]]
    values = {
        "table": Table("Episodes", _EPISODE_COLUMNS, rows, search=True, first=_SHOWN_FIRST),
        "players": sorted(set(listed["player"]), key=str.casefold),
        "outcomes": sorted({row["outcome"] for row in rows}),
        "files": [_build_file_path(found, at) for at in range(-(-len(rows) // _EPISODES_A_FILE))],
        "in_file": _EPISODES_A_FILE,
        "sample": _sample(found, listed) if rows else [],
        "games": dict(zip(ids, listed["item_id"], strict=True)),
    }
    played = len(found.episodes)
    chosen = (
        ""
        if len(rows) == played
        else f"; the list shows {len(rows):,}: the best and worst of each player, and others at random"
    )
    answer = f"{format_count(played, 'episode')} {'was' if played == 1 else 'were'} played to the end{chosen}."
    return Section(
        "episodes", "Episodes", [TemplateBlock("games/episodes.html.j2", values)] if rows else [], answer, _EPISODES_HOW
    )


def _sample(found: ScenarioResults, listed: pd.DataFrame) -> list[dict[str, Any]]:
    """Transcripts with a title, of episodes that are drawn by their ids."""
    drawn = sorted(convert_to_rows(listed), key=lambda row: digest("without scripts", row["episode_id"]))[:_SAMPLED_EPISODES]
    traces = _read_traces(found, [row["episode_id"] for row in drawn])
    return [
        {
            **transcript(found, {**row, **traces[row["episode_id"]]}),
            "title": f"{describe_game(found, row)} · {row['player']} · {format_outcome_words(str(row['outcome']))}",
        }
        for row in drawn
    ]


def _build_list_row(found: ScenarioResults, row: dict[Any, Any]) -> dict[str, Any]:
    shown = ("player", "reward", "above", "n_turns", "illegal")
    return {
        **{name: row[name] for name in shown},
        "episode": build_episode_link(found, row["episode_id"], describe_game(found, row)),
        "outcome": format_outcome_words(str(row["outcome"])),
        "noticed": ", ".join(str(one).replace("_", " ") for one in row["flags"]),
    }


def _build_file_path(found: ScenarioResults, at: int) -> str:
    return f"{found.path.removesuffix('.html')}/episodes-{at}.js"


def build_transcript_files(found: ScenarioResults, listed: pd.DataFrame) -> Iterator[DataFile]:
    """The transcripts of the listed episodes, in their order."""
    traces = _read_traces(found, listed["episode_id"].tolist()) if len(listed) else {}
    rows = convert_to_rows(listed)
    for at, start in enumerate(range(0, len(rows), _EPISODES_A_FILE)):
        own = rows[start : start + _EPISODES_A_FILE]
        held = {shorten_id(row["episode_id"]): transcript(found, {**row, **traces[row["episode_id"]]}) for row in own}
        yield DataFile(_build_file_path(found, at), held)


def _read_traces(found: ScenarioResults, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """`trace` and `trace_hash` of each of these episodes."""
    query = (
        "SELECT episode_id, trace, trace_hash FROM episodes WHERE league = ? AND scenario = ? AND list_contains(?, episode_id)"
    )
    rows = found.rows.connection.execute(query, [found.where["league"], found.where["scenario"], list(ids)]).fetchall()
    return {name: {"trace": trace, "trace_hash": trace_hash} for name, trace, trace_hash in rows}
