"""The leaderboards of games: the models of each scenario by their mean reward, with baselines for comparison, and the verdict on the first
board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.game_pairs import GAMES_NOTE, PLAYED_COVERAGE, UNPLAYED_NOTE, rank_places
from dtef_pipeline.games.metrics import FORFEIT_RATE, ILLEGAL_RATE, SUCCESS_RATE
from dtef_pipeline.games.personas import NO_PERSONA, PERSONA_STATUS, mark_unapproved
from dtef_pipeline.games.site.game_labels import format_unit
from dtef_pipeline.games.site.league_rows import PLAYER_KEYS, ScenarioResults, compare_on_seeds, describe_difference
from dtef_pipeline.site.content import Column, Estimate, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.number_text import show, show_interval
from dtef_pipeline.text.number_words import format_count, list_first_names

GAME_BOARD_HOW = (
    "A score is the mean reward over all episodes, against all opponents. Its interval treats the games of one deal as one observation. "
    "Models are ranked on the same games: a model that lacks games of the other models has no rank. Baselines cost nothing and may have "
    "played more games; the caption gives their number."
)
_GAME_COLUMNS = (
    Column("won", "Won", "percent", "Episodes won, of all episodes"),
    Column("illegal", "Illegal texts", "number", "Texts that were not a legal move, per turn; lower is better", always=True),
    Column(
        "forfeited", "Forfeited", "percent", "Episodes lost because the player gave no legal move; lower is better", more=True
    ),
    Column("n_games", "Games", "count", "Seeds, each seen from one seat, against one opponent"),
    Column("n_episodes", "Episodes", "count", more=True),
    Column("n_clusters", "Seeds", "count", "Deals, the clusters of the interval", more=True),
)


class BoardPage(NamedTuple):
    """A board with its scenario and persona."""

    scenario: ScenarioResults
    persona: str
    """Persona of its models; empty: they play as themselves."""
    board: RankedBoard


def sort_boards(boards: Iterable[BoardPage]) -> list[BoardPage]:
    """Sort boards for the page: most models first."""
    return sorted(boards, key=lambda page: (-len(page.board.models), -len(page.scenario.episodes), page.board.title))


def build_boards_of_scenario(scenario: ScenarioResults) -> list[BoardPage]:
    """Build a board of the models that play a scenario as themselves, and one for each persona with results."""
    rows = scenario.filter_by_metric()
    models = rows[~rows["is_baseline"]]
    as_itself = set(models.loc[models["persona"] == NO_PERSONA, "model_variant"])
    roles = set(models.loc[~models["model_variant"].isin(as_itself), "persona"])
    personas = [*([NO_PERSONA] if as_itself else []), *sorted(roles)]
    return [BoardPage(scenario, persona, build_board(scenario, persona)) for persona in personas]


def build_board(scenario: ScenarioResults, persona: str) -> RankedBoard:
    """Build the board of the models that play a scenario as one persona, or as themselves."""
    rows = scenario.filter_by_metric()
    rows = rows[rows["is_baseline"] | (rows["persona"] == persona)]
    is_ranked = _find_same_games(scenario, rows)
    n_games = [len(games) for games in _games_of(scenario, rows)]
    rows = rows.assign(
        place=rank_places(rows, is_ranked), is_ranked=is_ranked, won=list_values(scenario, SUCCESS_RATE, rows), n_games=n_games
    )
    as_persona = f" as {scenario.labels.persona(persona)}" if persona else ""
    return RankedBoard(
        "-".join(filter(None, (scenario.name.replace("/", "-"), persona.replace(":", "-")))),
        f"{scenario.title}{as_persona}",
        f"Mean reward, {describe_unit(scenario.unit)}; higher is better{_games_words(rows)}",
        [_build_board_row(scenario, row, rows) for row in convert_to_rows(rows)],
        columns=_GAME_COLUMNS,
        guide=GAME_BOARD_HOW,
    )


def _find_same_games(scenario: ScenarioResults, rows: pd.DataFrame) -> pd.Series[bool]:
    """Return flags for rows of models that have every game of any model in these rows; without episodes, every game of any player."""
    if not len(scenario.episodes):
        return ~rows["is_baseline"] & ~(rows[PLAYED_COVERAGE] < 1)
    games = _games_of(scenario, rows)
    every = set().union(*(group for group, is_baseline in zip(games, rows["is_baseline"], strict=True) if not is_baseline))
    return ~rows["is_baseline"] & pd.Series([group == every for group in games], index=rows.index, dtype=bool)


def _games_of(scenario: ScenarioResults, rows: pd.DataFrame) -> list[set[str]]:
    """Return the games of each row's player; empty if episodes are not stored."""
    games = scenario.episodes.groupby(PLAYER_KEYS)["item_id"].agg(set).to_dict()
    return [games.get(key, set()) for key in list_player_keys(rows)]


def _games_words(rows: pd.DataFrame) -> str:
    """Say which games the ranked models and the baselines have if these differ, so that their means cannot be compared."""
    ranked, baselines = (sorted(set(rows.loc[rows[name], "n_games"])) for name in ("is_ranked", "is_baseline"))
    if not ranked or not baselines or ranked == baselines:
        return ""
    baseline_counts = " to ".join(f"{n:,}" for n in dict.fromkeys((baselines[0], baselines[-1])))
    return (
        f". Ranked models played the same {format_count(ranked[0], 'game')}, baselines {baseline_counts}: compare them on "
        "the page of the scenario"
    )


def list_values(scenario: ScenarioResults, metric: str, players: pd.DataFrame) -> list[float]:
    """Return the mean of another metric for the same players."""
    rows = scenario.filter_by_metric(metric)
    means: Mapping[tuple[Any, ...], float] = dict(zip(list_player_keys(rows), rows["mean"], strict=True))
    return [means.get(key, np.nan) for key in list_player_keys(players)]


def list_player_keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the player key of each row."""
    return list(zip(*(frame[name] for name in PLAYER_KEYS), strict=True))


def _build_board_row(scenario: ScenarioResults, row: Mapping[Any, Any], rows: pd.DataFrame) -> BoardRow:
    rank = int(row["place"]) if row["is_ranked"] and not is_unknown(row["place"]) else None
    return BoardRow(
        row["name"],
        Estimate(row["mean"], row["low"], row["high"]),
        rank,
        *(_rank_range(row, rows[rows["is_ranked"]]) if rank else (None, None)),
        is_reference=row["is_baseline"],
        note=describe_mean(row),
        more={
            "won": row["won"],
            "illegal": row[ILLEGAL_RATE],
            "forfeited": row[FORFEIT_RATE],
            **{name: row[name] for name in ("n_games", "n_episodes", "n_clusters")},
        },
    )


def _rank_range(row: Mapping[Any, Any], models: pd.DataFrame) -> tuple[int | None, int | None]:
    """Return the best and the worst possible rank, if only models with separate intervals are ordered; None: the row has no interval."""
    if is_unknown(row["low"]):
        return None, None
    better, worse = (models["low"] > row["high"]).sum(), (models["high"] < row["low"]).sum()
    return 1 + int(better), int(models["mean"].notna().sum() - worse)


def describe_mean(row: Mapping[Any, Any]) -> str:
    """Return the notes on a mean: why it has no interval, what was not played, and whether the persona is not approved."""
    mark = mark_unapproved(row[PERSONA_STATUS])
    parts = [row["reason"], row[UNPLAYED_NOTE], row[GAMES_NOTE], f"a {mark}" if mark else ""]
    return "; ".join(str(part) for part in parts if not is_unknown(part))


def verdict(pages: Sequence[BoardPage]) -> str:
    """Return the finding of the first board, with its title."""
    return f"{pages[0].board.title}: {describe_board(pages[0])}"


def describe_board(page: BoardPage) -> str:
    """Describe the best model of a board, compared with baselines on the same games."""
    scenario, persona, board = page
    if not board.models:
        row = next(entry for entry in board.rows if not entry.is_reference)
        return f"{row.model} has no rank: {row.note}."
    best = board.models[0]
    interval = f" ({show_interval(best.score)})" if show_interval(best.score) else ""
    suffix = f", best of {len(board.models)} models" if len(board.models) > 1 else ""
    score = f"{show(best.score)}{format_unit(scenario.unit)} per episode{interval}{suffix}"
    lacking = [row.model for row in board.rows if not row.is_reference and row.rank is None]
    note = (
        f" {list_first_names(lacking, 3)} {'has' if len(lacking) == 1 else 'have'} no rank, because games of the other models are missing."
        if lacking
        else ""
    )
    return f"{best.model} makes {score}{_compare_with_baselines(scenario, persona, board)}.{note}"


def _compare_with_baselines(scenario: ScenarioResults, persona: str, board: RankedBoard) -> str:
    """Describe how many baselines the best model beats on the same games, and the result of the best of them."""
    baselines = [row for row in board.rows if row.is_reference and not is_unknown(row.score)]
    if not baselines:
        return ""
    best = board.models[0]
    player = scenario.labels.name_player(best.model, persona)
    words = [describe_difference(compare_on_seeds(scenario.rewards, player, row.model)) for row in baselines]
    beaten, n = words.count("better"), len(baselines)
    if set(words) == {"not tested"}:
        beats = "it played too few seeds to be compared with baselines"
    else:
        rivals = "every baseline" if beaten == n else f"{beaten or 'none'} of {format_count(n, 'baseline')}"
        beats = f"on the same games it beats {rivals}"
    first = max(baselines, key=lambda row: row.score.value or 0.0)
    result = f"{first.model.removesuffix(' (baseline)')}, makes {show(first.score, 'score')}"
    n_games = first.more["n_games"]
    coverage = "" if n_games == best.more["n_games"] else f" over {format_count(n_games, 'game')}"
    return f"; {beats}, and the best of them, {result}{coverage}"
