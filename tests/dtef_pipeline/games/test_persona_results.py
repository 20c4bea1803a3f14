"""Metrics of episodes and results of players: exploitation, the composite score, intervals by seeds, other games than others, and places."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import merge_metrics, require_composite
from dtef_pipeline.games.episode_items import build_game_items, build_item_rows, resolve_opponents, truth_id
from dtef_pipeline.games.episode_rows import compute_episode_scores
from dtef_pipeline.games.game_in_play import write_system_text
from dtef_pipeline.games.game_pairs import (
    add_game_coverage,
    compute_shared_results,
    rank_places,
    select_shown_versions,
    sort_players,
)
from dtef_pipeline.games.manifest import EvaluationWeights, read_manifests, select_manifests_in_play
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import (
    ALIKE_SEEDS,
    ALL_OPPONENTS,
    NO_YARDSTICK,
    SHARED_REQUESTS,
    SeedSums,
    compute_game_results,
    group_means_of,
)
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES, SCENARIO_ITEMS
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from resources.settings import Settings
from tests.made.made_games import CHIPS_WON, SCENARIOS, connected_scores, scored_games, show_pack
from tests.made.shared_cases import cases

TOLD = {**CHIPS_WON, "metric": "exploitation"}
CALL, RAISE, TIGHT = "baseline/call", "baseline/raise", "baseline/tight"
SEEDS = range(1, 9)


def unscored(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "numerator": None, "denominator": None, "value": None, "status": "unscored", "reason": "nothing"}


def rows_by_key(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of exploitation, by player and opponent. A scenario has the metric as it names it, though no episode tells of it."""
    untold = [unscored(row) | TOLD for row in rows]
    results = compute_game_results(connected_scores([*rows, *untold]))
    return {(row["model"], row["opponent"]): row for row in results.to_pylist() if row["metric"] == "exploitation"}


def constant(player: str, opponent: str, first: float, second: float) -> list[dict[str, Any]]:
    return list(scored_games(player, opponent, dict.fromkeys(SEEDS, (first, second))))


def test_exploitation_is_the_hand_value() -> None:
    rows = constant("model", TIGHT, 4, 0) + constant(CALL, TIGHT, 1, 1) + constant(RAISE, TIGHT, 2, 4)
    rows += (
        constant("model", CALL, 1, 1) + constant(RAISE, CALL, 0, 0) + constant(CALL, CALL, 0, 0) + constant(TIGHT, CALL, -1, 0)
    )
    own = rows_by_key(rows)
    assert own["model", TIGHT]["mean"] == pytest.approx(2 - 3)
    assert own["model", CALL]["mean"] == pytest.approx(1 - 0)
    assert own["model", "all"]["mean"] == pytest.approx((-1 + 1) / 2)
    assert own["model", "all"]["n_episodes"] == 4 * len(SEEDS)
    assert own[CALL, TIGHT]["mean"] == pytest.approx(1 - 3)
    assert own[RAISE, TIGHT]["mean"] == 0, "the best baseline is as good as itself"
    assert own[RAISE, TIGHT]["low"] is None
    assert (own["model", TIGHT]["unit"], own["model", TIGHT]["direction"]) == ("chips", "higher")


def test_exploitation_is_what_the_double_loop_gives_and_its_interval_that_of_the_difference() -> None:
    rng = np.random.default_rng(5)
    luck = {seed: rng.normal(0, 20, 2) for seed in SEEDS}
    rows: list[dict[str, Any]] = []
    for player, skill in (("model", 1.0), (CALL, 0.5), (RAISE, 2.5), (TIGHT, -1.0)):
        for opponent in (CALL, TIGHT):
            rewards = {seed: [float(skill + one + rng.normal(0, 0.5)) for one in luck[seed]] for seed in SEEDS}
            rows += scored_games(player, opponent, rewards)
    own = rows_by_key(rows)
    for player in ("model", CALL, RAISE, TIGHT):
        for opponent in (CALL, TIGHT):
            means = {
                one: np.mean([row["numerator"] for row in rows if (row["model"], row["opponent"]) == (one, opponent)])
                for one in (player, CALL, RAISE, TIGHT)
            }
            best = max(value for name, value in means.items() if name.startswith("baseline/"))
            assert own[player, opponent]["mean"] == pytest.approx(means[player] - best)
    row = own["model", TIGHT]
    assert row["low"] < row["mean"] < row["high"]
    assert row["high"] - row["low"] < 2, "the luck of the deals, of 20 chips, is the same for both"


def test_without_a_baseline_or_the_metric_itself_there_is_no_exploitation() -> None:
    rows = constant("model", TIGHT, 4, 0) + list(scored_games(CALL, TIGHT, {1: (1, 1)}))
    row = rows_by_key(rows)["model", TIGHT]
    assert (row["mean"], row["reason"], row["n_episodes"], row["n_total"]) == (None, NO_YARDSTICK, 0, 2 * len(SEEDS))
    assert rows_by_key(rows)["model", "all"]["mean"] is None
    results = compute_game_results(connected_scores(constant("model", TIGHT, 4, 0)))
    assert set(results["metric"].to_pylist()) == {"expected_return"}


MANIFESTS = read_manifests(SCENARIOS)
GOOD = {
    "metric": "good",
    "metric_family": "efficacy",
    "unit": "share",
    "direction": "higher",
    "unit_scale": True,
    "weight": 3.0,
}
BAD = {"metric": "bad", "metric_family": "efficacy", "unit": "share", "direction": "lower", "unit_scale": True, "weight": 1.0}


def composites(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = compute_game_results(connected_scores(rows)).to_pylist()
    return {(row["model"], row["opponent"]): row for row in found if row["metric"] == "composite"}


def test_the_composite_is_the_hand_value_and_names_its_weights() -> None:
    rows = list(scored_games("one", "a", {1: (1.0, 0.5), 2: (0.0, 0.5)}, GOOD))
    rows += scored_games("one", "a", {1: (0.2, 0.2), 2: (0.2, 0.6)}, BAD)
    rows += scored_games("one", "a", {1: (1, 2), 2: (3, 4)})
    row = composites(rows)["one", "all"]
    assert row["mean"] == pytest.approx((3 * 0.5 + 1 * (1 - 0.3)) / 4)
    assert (row["unit"], row["direction"], row["n_clusters"]) == ("share", "higher", 2)
    assert row["reason"] == "no interval is computed for the weighted mean of: 1 x (1 - bad), 3 x good"
    assert composites(rows)["one", "a"]["mean"] == row["mean"]


def test_a_composite_with_a_part_that_nothing_reported_of_has_no_value_and_names_the_part() -> None:
    rows = list(scored_games("one", "a", {1: (1, 1)}, GOOD)) + list(scored_games("one", "a", {1: (1, 2)}))
    untold = [unscored(row) for row in scored_games("one", "a", {1: (0, 0)}, BAD)]
    row = composites(rows + untold)["one", "all"]
    assert row["mean"] is None
    assert row["reason"] == "no value of bad, a part of: 1 x (1 - bad), 3 x good"


def test_a_player_that_forfeits_every_episode_has_the_worst_composite() -> None:
    """It bid never, so that nothing told of its efficiency, and it had no composite: it stood nowhere."""
    forfeits = {**BAD, "metric": "forfeit_rate", "metric_family": "form"}
    rows = [*scored_games("fair", "a", {1: (0.2, 0.4)}, GOOD), *scored_games("fair", "a", {1: (0, 1)}, forfeits)]
    rows += scored_games("none", "a", {1: (1, 1)}, forfeits)
    rows += [row for name in ("fair", "none") for row in scored_games(name, "a", {1: (0, 0)})]
    rows += [unscored(row) for row in scored_games("none", "a", {1: (0, 0)}, GOOD)]
    found = composites(rows)
    assert found["fair", "all"]["mean"] == pytest.approx((3 * 0.3 + 0.5) / 4)
    assert found["none", "all"]["mean"] == pytest.approx(0)
    assert "forfeited" in found["none", "all"]["reason"]
    assert "worst: good" in found["none", "all"]["reason"]


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_weights_change_no_prompt_no_item_and_no_rule(name: str) -> None:
    own = MANIFESTS[name]
    other = own.model_copy(update={"evaluation": EvaluationWeights(algorithmic={"success_rate": 7}, human=1)})
    assert truth_id(own) == truth_id(other)
    assert [write_system_text(own, seat, None) for seat in range(len(own.seats))] == [
        write_system_text(other, seat, None) for seat in range(len(own.seats))
    ]
    packs = [pack(name, {name: one}) for one in (own, other)]
    none = SCENARIO_ITEMS.empty_table()
    tables = [
        build_item_rows(one, build_game_items(one.manifest, "1-2", resolve_opponents((), one.manifest)), none) for one in packs
    ]
    assert tables[0].equals(tables[1])


def test_a_scenario_in_production_plays_on_while_its_next_version_is_experimental() -> None:
    """Nights played an experimental version of it at once."""
    kuhn = MANIFESTS["poker/kuhn"]

    def played(*statuses: str) -> int:
        versions = [kuhn.model_copy(update={"version": n, "status": status}) for n, status in enumerate(statuses, 1)]
        return select_manifests_in_play(versions)["poker/kuhn"].version

    assert (played("experimental", "experimental"), played("production", "experimental")) == (2, 1)
    assert played("production", "retired", "experimental") == 2


Episodes = dict[int, list[float]]
"""Totals of episodes by seed; each counts 1."""


def of_groups(*groups: Episodes, spread: bool = False, share: bool = False) -> dict[str, Any]:
    rows = [
        (place, sum(values), sum(one**2 for one in values), len(values), len(values))
        for place, group in enumerate(groups)
        for values in group.values()
    ]
    columns = [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]
    flags = [np.full(len(groups), flag) for flag in (spread, share)]
    return group_means_of(SeedSums(columns[0].astype(np.int64), *columns[1:]), *flags)


LOPSIDED: Episodes = {seed: [float((seed * 7 + draw) % 5 - 2) for draw in range(1 + seed % 4)] for seed in range(20)}


def test_means_and_volatility_count_every_episode_once() -> None:
    every = [one for values in LOPSIDED.values() for one in values]
    for spread, expected in ((False, statistics.fmean(every)), (True, statistics.pstdev(every))):
        found = of_groups(LOPSIDED, spread=spread)
        assert found["mean"][0] == pytest.approx(expected)
        assert found["n_clusters"][0] == 20
        assert found["low"][0] < found["mean"][0] < found["high"][0]
        assert not spread or found["low"][0] >= 0


def test_the_interval_is_that_of_whole_seeds() -> None:
    # Each seed twice is not twice as much: the interval stays, that of twice as many seeds is narrower.
    single = {seed: [float(seed % 7)] for seed in range(30)}
    twice = {seed: values * 2 for seed, values in single.items()}
    more = {**single, **{seed + 100: values for seed, values in single.items()}}
    widths = of_groups(single, twice, more)
    width = widths["high"] - widths["low"]
    assert width[1] == pytest.approx(width[0])
    assert width[2] < 0.8 * width[0]


def test_shares_with_one_episode_a_seed_have_wilsons_interval() -> None:
    found = of_groups({seed: [float(seed < 3)] for seed in range(10)}, share=True)
    low, high = compute_wilson_interval(3, 10)
    assert (found["low"][0], found["high"][0], found["interval_kind"][0]) == (pytest.approx(low), pytest.approx(high), "wilson")
    several = of_groups({seed: [float(seed < 3), 1.0] for seed in range(10)}, share=True)
    assert several["interval_kind"][0] == "t"
    assert several["high"][0] <= 1


def test_without_seeds_that_differ_there_is_no_interval_and_the_reason_is_reported() -> None:
    few, alike = of_groups({1: [1.0], 2: [3.0]}), of_groups({seed: [2.0, -2.0] for seed in range(9)})
    assert np.isnan([few["low"][0], few["high"][0], alike["low"][0], alike["high"][0]]).all()
    assert few["reason"][0] == "no interval: 2 seeds, at least 5 are needed"
    assert (alike["mean"][0], alike["reason"][0], alike["interval_kind"][0]) == (0, ALIKE_SEEDS, None)


def test_seeds_that_share_requests_of_a_sampled_model_give_no_interval() -> None:
    rows = [
        row for name in ("sampled", "settled", "apart") for row in scored_games(name, "a", {seed: (seed,) for seed in range(6)})
    ]
    connection = connected_scores(rows)
    turns = [
        {**row, "request_key": key, "temperature": heat, "under_test": True, "call_status": "answered"}
        for row in rows
        for key, heat in [{"sampled": ("all", 1.0), "settled": ("each", 0.0), "apart": (row["cluster"], 1.0)}[row["model"]]]
    ]
    arrays = [pa.array([row.get(one.name) for row in turns], one.type) for one in EPISODE_TURNS]
    connection.register("episode_turns", pa.table(arrays, schema=EPISODE_TURNS))
    found = {row["model"]: row["reason"] for row in compute_game_results(connection).to_pylist() if row["opponent"] == "all"}
    assert found == {"sampled": SHARED_REQUESTS, "settled": None, "apart": None}


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


EpisodeRows = Sequence[Mapping[str, Any]]
KNOWN_SCENARIOS = load_known_scenarios(Settings.read_environment())


def scores(name: str, metric: str, episodes: EpisodeRows) -> list[dict[str, Any]]:
    """Rows of `episode_scores` of a metric; an episode has the outcome None if it was not played."""
    manifest = KNOWN_SCENARIOS[name].model_copy(update={"severities": {"low": "low", "high": "high", "forfeit": "medium"}})
    known: dict[str, Any] = {"version": manifest.version, "n_turns": 1, "forfeits": 0, "flags": [], "metric_counts": []}
    rows = [known | {"outcome": "win", "status": "played"} | {**episode} for episode in episodes]
    table = pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in EPISODES], schema=EPISODES)
    return [row for row in compute_episode_scores(table, pack(name, {name: manifest})).to_pylist() if row["metric"] == metric]


def mean(name: str, metric: str, episodes: EpisodeRows, *, spread: bool = False) -> float:
    """The mean over episodes of one seed each that have a value, as in `persona_results`."""
    counts = [(row["numerator"], row["denominator"]) for row in scores(name, metric, episodes) if row["status"] == "scored"]
    totals, sizes = (np.array(column, dtype=np.float64) for column in zip(*counts, strict=True))
    seeds = SeedSums(np.zeros(len(counts), dtype=np.int64), totals, totals**2, sizes, np.ones(len(counts)))
    return float(group_means_of(seeds, np.array([spread]), np.array([False]))["mean"][0])


def vector_value(fn: str, given: Mapping[str, Any]) -> Any:
    if fn == "success_rate":
        return mean("poker/kuhn", fn, [{"outcome": outcome} for outcome in given["outcomes"]])
    if fn == "red_flag_rate":
        episodes = [{"flags": given["violations"]}, *[{}] * (given["n"] - 1)]
        return {"rate": mean("poker/kuhn", fn, episodes), "weighted": mean("poker/kuhn", "red_flag_weighted", episodes)}
    return mean("poker/kuhn", fn, [{"reward": reward} for reward in given["rewards"]], spread=fn == "volatility")


def test_metrics_match_the_vectors() -> None:
    for case in (
        case for fn in ("success_rate", "expected_return", "volatility", "red_flag_rate") for case in cases("votes", fn)
    ):
        assert vector_value(case["fn"], case["in"]) == pytest.approx(case["out"], abs=case["tol"]), case["id"]


def test_a_scenario_without_winners_has_no_success_rate_whatever_its_outcomes_are() -> None:
    """Agreements were left out and forfeits kept, so that the rate was 0 over the forfeits alone."""
    episodes = [{"outcome": outcome} for outcome in ("agreement", "no_agreement", "loss")]
    failed = {"outcome": None, "status": "error", "reason": "it failed"}
    found = scores("negotiation/allocation", "success_rate", [*episodes, failed])
    assert [(row["value"], row["reason"]) for row in found] == [
        *[(None, "nobody wins or loses a negotiation")] * 3,
        (None, "it failed"),
    ]


def test_the_opponents_forfeit_is_no_red_flag_of_the_player() -> None:
    episodes = [{"flags": ["forfeit"], "forfeits": forfeits} for forfeits in (0, 1)]
    assert [row["value"] for row in scores("poker/kuhn", "red_flag_weighted", episodes)] == [0, 3]


def test_metrics_without_bounds_cannot_be_part_of_a_composite() -> None:
    metrics = merge_metrics("chips", ())
    with pytest.raises(ConfigError, match=r"expected_return has no bounds .*allowed: success_rate, forfeit_rate"):
        require_composite("evaluation", {"expected_return": 1}, metrics)
    with pytest.raises(ConfigError, match="not a metric of the scenario"):
        require_composite("evaluation", {"success": 1}, metrics)
