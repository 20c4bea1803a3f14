"""`dtef games board`: players who have other games than others have a note, and are compared on what all shown have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.games.persona_results import compute_game_results
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS, EPISODES, LEAGUE_SPACE
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.made.made_games import CHIPS_WON, connected_scores, scored_games
from tests.strict_json import strict

BOARD = ("games", "board", "--scenario", "made")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`much` has six seeds and wins less on all of them than `little` on the two that it has, which are rich ones."""
    rows = list(scored_games("much", "baseline/a", {seed: (9 - 2 * seed, 9 - 2 * seed) for seed in range(1, 7)}))
    rows += scored_games("little", "baseline/a", {seed: (6 - seed, 6 - seed) for seed in (1, 2)})
    rows += scored_games("other", "baseline/b", {1: (1, 1)})
    connection = connected_scores(rows)
    house = Warehouse(tmp_path_factory.mktemp("games") / "warehouse")
    at = {**LEAGUE_SPACE.levels("poker/made"), "snapshot": "base"}
    house.write("episode_scores", connection.sql("FROM episode_scores").to_arrow_table().cast(EPISODE_SCORES), **at)
    house.write("episode_turns", EPISODE_TURNS.empty_table(), **at)
    house.write("persona_results", compute_game_results(connection))
    return Path(house.root)


def test_the_board_marks_other_games_and_compares_players_on_the_same_ones(house: Warehouse) -> None:
    rows = {row["player"]: row for row in strict(ok(*BOARD, "--json"))}
    assert list(rows) == ["little", "much", "other"]
    assert rows["little"]["coverage"] == pytest.approx(4 / 14)
    assert "it played 4 of 14 games" in rows["little"]["note"]
    told = " ".join(ok(*BOARD).split())
    assert "their ranks are not comparable: --games shared" in told
    two = ("--player", "much", "--player", "little", "--games", "shared")
    shared = strict(ok(*BOARD, *two, "--json"))
    assert [(row["player"], row["mean"], row["n_clusters"]) for row in shared] == [("much", 6.0, 2), ("little", 4.5, 2)]


def test_notes_name_the_metric_where_all_are_shown_and_the_opponent_where_each_is(house: Warehouse) -> None:
    """Regression: `made, little: the episode says nothing of it`, and nobody could tell of what."""
    told = " ".join(ok(*BOARD, "--metric", "all", "--by-opponent", "--player", "little").split())
    assert "made, little, baseline/a, expected_return" in told


def test_players_without_a_common_game_and_unknown_ones_are_refused_in_words(house: Warehouse) -> None:
    assert "no game in common" in refused(*BOARD, "--games", "shared")
    assert "--player 'nobody' matches none" in refused(*BOARD, "--player", "nobody")


def test_results_without_their_scores_are_shown_without_a_word_on_games(house: Warehouse) -> None:
    for file in Path(house.root).glob("episode_scores/**/*.parquet"):
        file.unlink()
    rows = strict(ok(*BOARD, "--json"))
    assert {row["coverage"] for row in rows} == {None}
    assert "no episode_scores" in refused(*BOARD, "--games", "shared")


def ended(model: str, statuses: Sequence[str]) -> pa.Table:
    """Rows of `episodes` with these states, against baseline/a."""
    who = {"league": "poker", "scenario": "made", "version": 1, "persona": "", "model": model, "model_variant": model}
    rows = [{**who, "snapshot": "base", "opponent": "baseline/a", "status": status} for status in statuses]
    return pa.Table.from_pylist(rows, schema=EPISODES)


def test_a_row_says_how_many_of_its_episodes_were_played_and_what_ended_the_others(house: Warehouse) -> None:
    """A board after a budget looked like one of all episodes, though only short ones were left."""
    states = [*["played"] * 4, *["skipped_budget"] * 5, "error"]
    at = {**LEAGUE_SPACE.levels("poker/made"), "snapshot": "base"}
    house.write("episodes", pa.concat_tables([ended("little", states), ended("much", ["played"] * 12)]), **at)
    said = "4 of 10 episodes were played: a budget ended 5, 1 failed"
    for more in (["--games", "shared", "--player", "much", "--player", "little"], ["--by-opponent"]):
        rows = {row["player"]: row for row in strict(ok(*BOARD, *more, "--json"))}
        assert said in rows["little"]["note"]
        assert "were played" not in rows["much"]["note"]
    told = " ".join(ok(*BOARD).split())
    assert said in told
    assert "the mean of the others may be biased" in told


def test_refusals_and_moves_made_for_a_player_stand_beside_every_metric(house: Warehouse) -> None:
    form = [
        {**CHIPS_WON, "metric": name, "metric_family": "form", "unit": "per turn", "direction": "lower"}
        for name in ("refused_rate", "default_rate")
    ]
    rows = list(scored_games("shy", "baseline/a", {1: (1, 1)}))
    for metric, rate in zip(form, (0.5, 0.25), strict=True):
        rows += scored_games("shy", "baseline/a", {1: (rate, rate)}, metric)
    results = compute_game_results(connected_scores(rows))
    house.write("persona_results", results)
    (row,) = strict(ok(*BOARD, "--json"))
    assert (row["metric"], row["refused_rate"], row["default_rate"]) == ("expected_return", 0.5, 0.25)
    assert "refused rate  default rate" in ok(*BOARD)


def test_rows_of_several_snapshots_name_them_and_one_can_be_chosen(house: Warehouse) -> None:
    """The results of a later run stood among others of `base`, and nothing told them apart."""
    rows = [{**row, "snapshot": "later"} for row in scored_games("little", "baseline/a", {1: (1, 2), 2: (3, 4)})]
    at = LEAGUE_SPACE.levels("poker/made")
    house.write("episode_scores", pa.Table.from_pylist(rows, schema=EPISODE_SCORES), **at, snapshot="later")
    with house.connect() as connection:
        house.write("persona_results", compute_game_results(connection))
    found = {row["player"]: (row["snapshot"], row["mean"]) for row in strict(ok(*BOARD, "--json"))}
    assert found == {"little": ("later", 2.5), "much": ("base", 2.0), "other": ("base", 1.0)}
    base = strict(ok(*BOARD, "--snapshot", "base", "--json"))
    assert {row["player"]: row["mean"] for row in base} == {"little": 4.5, "much": 2.0, "other": 1.0}
    (later,) = strict(ok(*BOARD, "--snapshot", "later", "--json"))
    assert (later["player"], later["mean"], later["coverage"]) == ("little", 2.5, 1.0)
    assert "nothing was played in snapshot latr; snapshots: later" in refused(*BOARD, "--snapshot", "latr")
