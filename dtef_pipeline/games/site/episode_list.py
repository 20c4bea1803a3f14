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
