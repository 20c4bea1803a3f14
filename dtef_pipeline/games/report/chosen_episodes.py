"""The episodes of a scenario that are shown move by move: the best, the worst, and such as went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.persona_results import player_names
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.games.report.league_rows import PLAYER_KEYS, ScenarioResults
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows

_OF_CHOICE = (
    *("league", "scenario", "version", "episode_id", "item_id", *PLAYER_KEYS, "opponent", "cluster", "draw", "seat"),
    *("outcome", "reward", "steps", "n_turns", "illegal", "refused", "forfeits", "defaults", "flags"),
)


class ChosenEpisode(NamedTuple):
    """One episode, and why it is shown."""

    why: str
    row: StoredRow
    """Of `episodes`, with `player`, `trace` and `trace_hash`."""


class _Choice(NamedTuple):
    why: str
    fits: Callable[[pd.DataFrame], pd.Series[bool]]
    """Which episodes may be it."""
    by: tuple[tuple[str, bool], ...]
    """Columns to sort by, and whether upwards: the first is it."""


_EPISODE_CHOICES = (
    _Choice(
        "The best episode of a model", lambda frame: frame["by_model"], (("reward", False), ("illegal", True), ("steps", True))
    ),
    _Choice("The worst episode of a model", lambda frame: frame["by_model"], (("reward", True), ("n_turns", False))),
    _Choice(
        "Texts that were no legal moves",
        lambda frame: frame["illegal"] > 0,
        (("forfeits", True), ("defaults", True), ("illegal", False)),
    ),
    _Choice("A refusal to play", lambda frame: frame["refused"] > 0, (("refused", False),)),
    _Choice("Forfeited for want of a legal move", lambda frame: frame["forfeits"] > 0, (("n_turns", False),)),
    _Choice("The best episode of a baseline", lambda frame: ~frame["by_model"], (("reward", False), ("steps", True))),
)


def chosen_episodes(rows: StoredRows, found: ScenarioResults) -> list[ChosenEpisode]:
    """A handful of episodes of the version that is shown, each once."""
    frame = _played(rows, found)
    chosen: dict[str, str] = {}
    for choice in _EPISODE_CHOICES if len(frame) else ():
        own = frame[choice.fits(frame) & ~frame["episode_id"].isin(list(chosen))]
        if len(own):
            names, ways = [name for name, _ in choice.by], [up for _, up in choice.by]
            first = own.sort_values([*names, "item_id", "episode_id"], ascending=[*ways, True, True]).iloc[0]
            chosen[str(first["episode_id"])] = choice.why
    return [ChosenEpisode(why, row) for name, why in chosen.items() if (row := _whole(rows, found, name))]


def _where(found: ScenarioResults) -> dict[str, Any]:
    league, _, scenario = found.name.partition("/")
    return {"league": league, "scenario": scenario, "version": found.version}


def _played(rows: StoredRows, found: ScenarioResults) -> pd.DataFrame:
    """The episodes that were played to their end, of the snapshots that the boards show."""
    if not rows.has("episodes"):
        return pd.DataFrame()
    frame: pd.DataFrame = rows.table("episodes", _OF_CHOICE, {**_where(found), "status": PLAYED_EPISODE}).to_pandas()
    players = found.overall
    if len(players):
        frame = frame.merge(players[PLAYER_KEYS].drop_duplicates(), on=PLAYER_KEYS)
    return frame.assign(by_model=~frame["model"].str.startswith(BASELINE_PREFIX))


def _whole(rows: StoredRows, found: ScenarioResults, episode_id: str) -> StoredRow | None:
    held = rows.rows("episodes", (*_OF_CHOICE, "trace", "trace_hash"), {**_where(found), "episode_id": episode_id})
    if not held:
        return None
    (player,) = player_names([held[0]["persona"]], [held[0]["model"]])
    return {**held[0], "player": player}
