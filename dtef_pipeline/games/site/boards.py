"""The leaderboards of games: the models of each scenario by their mean reward, with baselines for comparison, and the verdict on the first
board."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from dtef_pipeline.games.contract import ILLEGAL_RATE
from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.game_pairs import rank_places
from dtef_pipeline.games.personas import NO_PERSONA
from dtef_pipeline.games.site.league_rows import ScenarioResults, describe_difference, read_mean
from dtef_pipeline.site.content import Column, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count, list_first_names

_HOW = (
    "A score is the mean reward over all episodes, against all opponents. Its interval treats the games of one deal as one observation. "
    "Models are ranked on the same games: a model that lacks games of the other models has no rank. Baselines cost nothing and may have "
    "played other games."
)
_COLUMNS = (
    Column("won", "Won", "percent", "Episodes won, of all episodes"),
    Column(ILLEGAL_RATE, "Illegal texts", "number", "Texts that were not a legal move, per turn; lower is better", always=True),
    Column("n_games", "Games", "count", "Seeds, each seen from one seat, against one opponent"),
    Column("n_clusters", "Seeds", "count", "Deals, the clusters of the interval", more=True),
)


class BoardPage(NamedTuple):
    """A board with its scenario."""

    scenario: ScenarioResults
    board: RankedBoard
    suffix: str = ""
    """Words after the names of its models: ` as Calm v2`; empty: they play as themselves."""


def build_boards_of_scenario(scenario: ScenarioResults) -> list[BoardPage]:
    """Build a board of the models that play a scenario as themselves, and one for each persona of models that never do."""
    players = scenario.players
    models = players[~players["is_reference"]]
    as_itself = set(models.loc[models["persona"] == NO_PERSONA, "name"])
    others = set(models.loc[~models["name"].isin(as_itself), "persona"])
    boards = []
    for persona in [*([NO_PERSONA] if as_itself else []), *sorted(others)]:
        rows = players[players["is_reference"] | (players["persona"] == persona)]
        suffix = f" as {scenario.labels.personas.get(persona, persona)}" if persona else ""
        board_id = "-".join(filter(None, (scenario.name.replace("/", "-"), persona.replace(":", "-"))))
        boards.append(BoardPage(scenario, build_board(scenario, rows, board_id, f"{scenario.link.text}{suffix}"), suffix))
    return boards


def build_board(scenario: ScenarioResults, rows: pd.DataFrame, board_id: str, title: str, label: str = "name") -> RankedBoard:
    """Build the board of these rows of `players`, in which models are ranked if they have every game of any of the models.

    `label`: the column with the words for a player.
    """
    is_model = ~rows["is_reference"]
    every_game = set().union(*rows.loc[is_model, "games"])
    is_ranked = is_model & rows["games"].map(lambda games: games == every_game).astype(bool)
    places, ranked = rank_places(rows, is_ranked).where(is_ranked), rows[is_ranked]
    has_range = places.notna() & rows["low"].notna()
    better = rows["high"].map(lambda high: (ranked["low"] > high).sum())
    worse = rows["low"].map(lambda low: (ranked["high"] < low).sum())
    frame = rows.assign(
        rank=places,
        rank_low=(1 + better).where(has_range),
        rank_high=(ranked["mean"].notna().sum() - worse).where(has_range),
        n_games=rows["games"].map(len),
    )
    board_rows = [BoardRow.from_row(row, read_mean(row), _COLUMNS, label) for row in convert_to_rows(frame)]
    measure = f"Mean reward, {describe_unit(scenario.unit)}; higher is better"
    own, others = (set(frame.loc[mask, "n_games"]) for mask in (is_ranked, ~is_model))
    if own and others and own != others:
        measure += f". Ranked models played the same {format_count(max(own), 'game')}, baselines up to {max(others):,}"
    unit = scenario.unit if scenario.unit.endswith("s") else ""
    return RankedBoard(board_id, title, measure, board_rows, columns=_COLUMNS, guide=_HOW, unit=unit)


def describe_board(page: BoardPage) -> str:
    """Describe the best models of a board, and the first compared with baselines on the same games."""
    board, first = page.board, describe_best_of_models(page.board)
    lacking = [row.model for row in board.rows if not row.is_reference and row.rank is None]
    note = f" Without a rank, because games of the other models are missing: {list_first_names(lacking, 3)}." if lacking else ""
    baselines = [row for row in board.rows if row.is_reference and not is_unknown(row.score)]
    if not board.models or not baselines:
        return f"{first}{note}"
    player = board.models[0].model
    words = [describe_difference(page.scenario.compare(f"{player}{page.suffix}", row.model)) for row in baselines]
    beats = f"On the same games {player} beats {words.count('better')} of {format_count(len(words), 'baseline')}"
    if set(words) == {"not tested"}:
        beats = f"{player} played too few seeds to be compared with baselines"
    best = max(baselines, key=lambda row: row.score.value or 0.0)
    unit = f" {board.unit}" if board.unit else ""
    result = f"{show(best.score, 'score')}{unit} over {format_count(best.more['n_games'], 'game')}"
    return f"{first} {beats}; the best baseline, {best.model.removesuffix(' (baseline)')}, makes {result}.{note}"
