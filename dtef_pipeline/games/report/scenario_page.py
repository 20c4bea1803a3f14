"""The page of one scenario: its rules, boards, all metrics, who met whom, personas, how rewards scatter, and episodes to follow."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.opening import unit_in_words
from dtef_pipeline.games.report.chosen_episodes import ChosenEpisode
from dtef_pipeline.games.report.league_rows import MADE_BY_LEAGUE, ScenarioResults
from dtef_pipeline.games.report.look import games_file, games_style
from dtef_pipeline.games.report.player_board import PLAYERS_HOW, metric_boards
from dtef_pipeline.games.report.player_grids import joined, matchups_grid, metrics_by_family, personas_grids
from dtef_pipeline.games.report.reward_spread import reward_spread
from dtef_pipeline.games.report.same_games_part import same_games_chapters
from dtef_pipeline.games.report.strategies_part import strategy_chapters
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import Column, described, estimate, named, note, paragraph, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.text.counted import counted

_METRICS_HOW = "Every metric of each player, by family, over all opponents; players stand in the order of their mean reward."
_MATCHUPS_HOW = (
    "How the player of a row fares against the opponent of a column, over the same deals in all seats. The ground is the stronger, the "
    "further the mean is from 0."
)
_PERSONAS_HOW = "Read a row: one model as several personas. Read a column: one persona, played by several models. The board has all of them."
_SPREAD_HOW = "The mean reward of each seed, over its seats, opponents and draws, as a histogram: how much of a mean is luck with the deals."
_EPISODES_HOW = "Some episodes, move by move: the best and the worst of a model, and such as went wrong. Ties go to the first by seed and seat."
_EPISODE_TABLE = (
    Column("link", "Why it is shown", named),
    Column("player", "Player", text),
    Column("opponent", "Against", text),
    Column("cluster", "Seed", text),
    Column("outcome", "Outcome", text),
    Column("reward", "Reward", estimate),
    Column("n_turns", "Turns", whole),
    Column("illegal", "Illegal texts", whole),
    Column("noticed", "Noticed", note),
)


class EpisodeLink(NamedTuple):
    """An episode that has a page."""

    page: str
    chosen: ChosenEpisode


def scenario_page(rows: StoredRows, found: ScenarioResults, episodes: Sequence[EpisodeLink]) -> str:
    """The page."""
    chapters = [
        Chapter("rules", "Rules", _rules(found), style=games_style(), script=games_file("games.js")),
        *(_results(rows, found) if len(found.overall) else [Chapter("board", "Board", _no_board())]),
        *same_games_chapters(found),
        *strategy_chapters(rows, found),
        Chapter("episodes", "Episodes", _episodes(episodes)),
    ]
    told = found.pack.manifest.description if found.pack else "This scenario is not installed any more."
    introduction = f'<p><a href="{INDEX_PAGE}">All scenarios</a></p><p>{inline(told)}</p>{_versions(found)}'
    return build_report(found.name, introduction, chapters)


def _results(rows: StoredRows, found: ScenarioResults) -> list[Chapter]:
    overall = found.overall
    players = overall[overall["metric"] == EXPECTED_RETURN]
    return [
        Chapter("board", "Board", section("board", "Board", PLAYERS_HOW, metric_boards(found, forms=True))),
        Chapter("metrics", "All metrics", section("metrics", "All metrics", _METRICS_HOW, metrics_by_family(found))),
        Chapter("matchups", "Matchups", section("matchups", "Matchups", _MATCHUPS_HOW, matchups_grid(found))),
        Chapter("personas", "Personas", section("personas", "Personas", _PERSONAS_HOW, personas_grids(found))),
        Chapter(
            "spread", "Rewards by seed", section("spread", "Rewards by seed", _SPREAD_HOW, reward_spread(rows, found, players))
        ),
    ]


def _no_board() -> str:
    return section("board", "Board", PLAYERS_HOW, missing("No board yet", MADE_BY_LEAGUE))


def _versions(found: ScenarioResults) -> str:
    if not found.older:
        return ""
    earlier = ", ".join(map(str, found.older))
    return paragraph(f"This is version {found.version}; versions are never averaged. The tables also have: {earlier}.")


def _rules(found: ScenarioResults) -> str:
    how = "What every player is told, and how the scenario is played."
    if found.pack is None:
        return section("rules", "Rules", how, paragraph("They are in the manifest of the scenario, which is not installed."))
    manifest = found.pack.manifest
    other = "" if found.playable else f" (installed; these results are of version {found.version})"
    illegal = "it forfeits" if manifest.on_illegal == "forfeit" else "a move is made for it"
    zero_sum = "; what one seat wins, the others lose" if found.pack.scenario.zero_sum else ""
    facts: dict[str, Any] = {
        "Version": f"{manifest.version}{escape(other)}, {escape(manifest.status)}",
        "Seats": joined(manifest.seats),
        "Reward": inline(unit_in_words(found.pack.scenario.unit)) + zero_sum,
        "Usual opponents": joined(manifest.opponents) or "none",
        "Turn limit": f"{manifest.turn_limit:,}",
        "A text that is no move": f"{counted(manifest.retries, 'more text')} in the same turn, then {illegal}",
        "Legal commands": "told in every turn" if manifest.show_legal else "not told",
    }
    words = [manifest.rules, *(f"You must not: {one}" for one in manifest.constraints), manifest.reply_format]
    whole_text = "".join(f'<div class="raw">{escape(one.strip())}</div>' for one in words)
    folded = f'<details class="seen"><summary>The rules, word for word</summary>{whole_text}</details>'
    return section("rules", "Rules", how, described(facts) + folded)


def _episodes(episodes: Sequence[EpisodeLink]) -> str:
    if not episodes:
        return section("episodes", "Episodes", _EPISODES_HOW, missing("No episodes yet", MADE_BY_LEAGUE))
    listed = [
        {
            **one.chosen.row,
            "link": f'<span class="name"><a href="{one.page}">{escape(one.chosen.why)}</a></span>',
            "outcome": str(one.chosen.row["outcome"]).replace("_", " "),
            "noticed": ", ".join(one.chosen.row["flags"] or ()).replace("_", " "),
        }
        for one in episodes
    ]
    frame = pd.DataFrame(listed)
    data = frame.drop(columns=["link", "trace", "flags"])
    return section(
        "episodes",
        "Episodes",
        _EPISODES_HOW,
        table(frame, _EPISODE_TABLE, caption="Episodes move by move", row_head="link", data=data),
    )
