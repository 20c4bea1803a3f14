"""Players who played other games than others, and the order in which players stand."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.games.game_pairs import (
    add_game_coverage,
    compute_shared_results,
    rank_places,
    select_shown_versions,
    sort_players,
)
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, compute_game_results
from dtef_pipeline.games.site.boards import build_board
from dtef_pipeline.games.site.game_labels import GameDocuments
from dtef_pipeline.games.site.league_rows import ScenarioResults, load_scenario_results
from dtef_pipeline.games.site.metric_tables import build_same_games_section
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Table
from tests.made.made_games import show_pack
from tests.made.made_scores import connected_scores, scored_games

FEW, MANY = range(1, 4), range(1, 7)


def lopsided() -> list[dict[str, Any]]:
    """`wide` meets two opponents on six seeds; `small` one of them on three, where everybody wins much."""
    rng = np.random.default_rng(4)
    rows = list(scored_games("wide", "baseline/a", {seed: (10 - seed, rng.integers(-2, 3)) for seed in MANY}))
    rows += scored_games("wide", "baseline/b", dict.fromkeys(MANY, (-5, -3)))
    return rows + list(scored_games("small", "baseline/a", dict.fromkeys(FEW, (4, 1, 2, 1))))


def mean_by_hand(rows: list[dict[str, Any]], player: str, items: set[str]) -> float:
    return float(np.mean([row["numerator"] for row in rows if row["model"] == player and row["item_id"] in items]))


def overall(results: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in results[results["opponent"] == ALL_OPPONENTS].to_dict("records")}


def test_a_player_that_lacks_games_is_marked_with_what_it_lacks() -> None:
    connection = connected_scores(lopsided())
    results = compute_game_results(connection).to_pandas()
    found = add_game_coverage(connection, results)
    by_player = overall(found)
    assert by_player["wide"]["coverage"] == 1
    assert by_player["wide"]["games_note"] == ""
    assert by_player["small"]["coverage"] == pytest.approx(6 / 24)
    assert by_player["small"]["games_note"] == "it played 6 of 24 games"
    met = found[(found["model"] == "small") & (found["opponent"] == "baseline/a")].iloc[0]
    assert met["games_note"] == "it played 6 of 12 games"
    alone = add_game_coverage(connection, results[results["model"] == "small"])
    assert set(alone["coverage"]) == {1.0}


def test_shared_games_are_those_that_every_player_has_and_the_order_may_turn() -> None:
    rows = lopsided()
    connection = connected_scores(rows)
    results = compute_game_results(connection).to_pandas()
    own = overall(results)
    items = {f"{seed}/{seat}/baseline/a" for seed in FEW for seat in (0, 1)}
    found = overall(compute_shared_results(connection, results))
    assert own["small"]["mean"] > own["wide"]["mean"]
    assert found["small"]["mean"] < found["wide"]["mean"]
    for player in ("small", "wide"):
        assert found[player]["mean"] == pytest.approx(mean_by_hand(rows, player, items))
        assert found[player]["n_clusters"] == 3
    assert set(results["n_clusters"]) == {3, 6}, "results of all games stay as they are"


def shown(connection: duckdb.DuckDBPyConnection) -> ScenarioResults:
    (found,) = load_scenario_results(StoredRows(connection), GameDocuments())
    return found


def test_the_page_gives_no_rank_to_who_lacks_games_and_compares_the_same_games() -> None:
    connection = connected_scores(lopsided())
    connection.register("persona_results", compute_game_results(connection))
    found = shown(connection)
    rows = {row.model: row for row in build_board(found, "").rows}
    assert list(rows) == ["small", "wide"], "rows stand by their mean"
    assert (rows["wide"].rank, rows["small"].rank) == (1, None)
    assert "it played 6 of 24 games" in rows["small"].note
    section = build_same_games_section(found)
    assert section.answer.startswith("On the games that all players have, wide is first: ")
    assert isinstance(table := section.blocks[0], Table)
    assert [row["player"] for row in table.rows] == ["wide", "small"]
    assert not any("other games" in str(row["note"]) for row in table.rows)


def test_the_version_in_play_is_shown_and_else_the_latest_that_was_played() -> None:
    """An experimental version that was played once took the place of the one in production."""
    rows = [("made", "show-cards", 1), ("made", "show-cards", 2), ("other", "game", 1), ("other", "game", 3)]
    frame = pd.DataFrame(rows, columns=["league", "scenario", "version"])
    manifest = show_pack(version=1).manifest
    shown = select_shown_versions(frame, {manifest.id: manifest})
    assert list(shown.itertuples(index=False, name=None)) == [rows[0], rows[3]]
    not_played = {manifest.id: manifest.model_copy(update={"version": 7})}
    assert list(select_shown_versions(frame, not_played)["version"]) == [2, 3]
    assert select_shown_versions(frame.iloc[:0], not_played).empty


def board(family: str = "efficiency", direction: str = "lower") -> pd.DataFrame:
    """Players of a metric: means, and shares of episodes that they forfeited."""
    rows = [("absent", None, 0.0), ("forfeiter", None, 1.0), ("good", 1.0, 0.0), ("poor", 9.0, 0.5), ("same", 9.0, 0.0)]
    fixed = {"league": "made", "scenario": "cards", "opponent": "all", "metric": "steps", "persona": "", "model_variant": ""}
    frame = pd.DataFrame(rows, columns=["model", "mean", "forfeit_rate"])
    return frame.assign(**fixed, metric_family=family, direction=direction)


@pytest.mark.parametrize(("direction", "first"), [("lower", ["good", "poor", "same"]), ("higher", ["poor", "same", "good"])])
def test_who_forfeits_every_episode_is_last_and_not_nowhere(direction: str, first: list[str]) -> None:
    shown = sort_players(board(direction=direction))
    assert list(shown["model"]) == [*first, "forfeiter", "absent"]
    found = dict(zip(shown["model"], rank_places(shown, shown["model"] != ""), strict=True))
    assert found["forfeiter"] == 4
    assert pd.isna(found["absent"])
    assert found["poor"] == found["same"]
    assert min(found["good"], found["poor"]) == 1


def test_neither_form_nor_metrics_without_a_better_side_have_a_last_place_for_who_forfeits() -> None:
    for frame in (board(family="form"), board(direction="none")):
        found = dict(zip(frame["model"], rank_places(frame, frame["model"] != ""), strict=True))
        assert pd.isna(found["forfeiter"])
