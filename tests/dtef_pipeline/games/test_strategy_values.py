"""Decision points, what answers in them say of a strategy, and what it is worth: exact, null with the reason, and honest about draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.exact.decision_points import (
    DecisionPlan,
    DecisionPoint,
    PointRequest,
    build_answer_table,
    build_point_messages,
    draw_counts,
    has_decision_points,
    list_decision_points,
    merge_point_answers,
    select_points_to_ask,
)
from dtef_pipeline.games.exact.exact_play import build_exact_game
from dtef_pipeline.games.exact.strategies import Strategy, build_uniform_strategy
from dtef_pipeline.games.exact.strategy_values import (
    StrategyOptions,
    StrategyValues,
    build_strategy_rows,
    compute_exact_values,
    estimate_values,
)
from dtef_pipeline.games.game_in_play import build_opening_messages
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.games.small_poker import SmallPoker
from tests.conftest import ROOT
from tests.made.made_games import show_pack
from tests.made.small_poker import random_strategy, small_poker

KUHN_PACK = Pack(read_manifest(ROOT / "data" / "scenarios" / "poker" / "kuhn.yaml"), small_poker("kuhn"))
LEDUC_PACK = Pack(read_manifest(ROOT / "data" / "scenarios" / "poker" / "leduc.yaml"), small_poker("leduc"))
MIXED = Player(ModelSpec(name="mixed", model="openai/mixed"))
Says = Callable[[DecisionPoint, int], str | None]
"""What is read from a draw of a point; None: no response came."""


def three_to_one(point: DecisionPoint, draw: int) -> str:
    """The first legal command in three draws of four, else the last."""
    return point.legal[-1 if draw % 4 == 3 else 0]


def plan_of(pack: Pack, sample: int | None = None, draws: int = 4) -> DecisionPlan:
    return DecisionPlan(pack, select_points_to_ask(pack.scenario, sample), [MIXED], draws, "base")


def row_of(plan: DecisionPlan, one: PointRequest, said: str | None) -> dict[str, Any]:
    manifest = plan.pack.manifest
    return {
        "league": manifest.league,
        "scenario": manifest.scenario,
        "version": manifest.version,
        "truth_id": truth_id(manifest),
        "snapshot": plan.snapshot,
        "point": one.point.id,
        "persona": one.player.persona_name,
        "model": one.player.model_name,
        "model_variant": one.player.variant,
        "draw": one.request.draw,
        "prompt_id": one.request.prompt_id,
        "request_key": one.request.key,
        "call_status": "budget" if said is None else "answered",
        "command": said if said in one.point.legal else None,
        "cost_usd": None if said is None else 0.5,
    }


def answers(plan: DecisionPlan, says: Says = three_to_one) -> pa.Table:
    return build_answer_table([row_of(plan, one, says(one.point, one.request.draw)) for one in plan.list_point_requests()])


def with_column(rows: pa.Table, name: str, value: str) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array([value] * len(rows)))


def valued(pack: Pack, rows: pa.Table, **options: Any) -> list[dict[str, Any]]:
    return build_strategy_rows(pack, rows, "base", StrategyOptions(**options)).to_pylist()


def chosen(rows: Iterable[Mapping[str, Any]], model: str, quantity: str, **about: Any) -> list[Mapping[str, Any]]:
    return [row for row in rows if {"model": model, "quantity": quantity, **about}.items() <= row.items()]


def exploitable(rows: Iterable[Mapping[str, Any]], model: str = "mixed") -> Mapping[str, Any]:
    (row,) = chosen(rows, model, "exploitability")
    return row


def drawn(strategy: Strategy, draws: int, rng: np.random.Generator) -> dict[str, list[str | None]]:
    """So many commands per information set, as a player of a strategy draws them."""
    return {name: [str(one) for one in rng.choice([*shares], draws, p=[*shares.values()])] for name, shares in strategy.items()}


def worth(game: SmallPoker, readings: Mapping[str, list[str | None]], resamples: int, seed: int = 1) -> StrategyValues:
    return estimate_values(game, draw_counts(list_decision_points(game), readings), {}, resamples=resamples, seed=seed)


def true_mean(game: SmallPoker, strategy: Strategy, other: Strategy) -> float:
    exact = build_exact_game(game)
    first = exact.value(exact.vector(strategy, 0), exact.vector(other, 1))
    return float(first - exact.value(exact.vector(other, 0), exact.vector(strategy, 1))) / 2


def true_exploitability(game: SmallPoker, strategy: Strategy) -> float:
    exact = build_exact_game(game)
    return float(exact.exploitability(exact.vector(strategy, 0), exact.vector(strategy, 1)))


class TestPoints:
    @pytest.mark.parametrize(("name", "number"), [("kuhn", 12), ("leduc", 936), ("leduc without suits", 288)])
    def test_every_information_set_is_one_point(self, name: str, number: int) -> None:
        points = list_decision_points(small_poker(name))
        assert len({point.id for point in points}) == len({point.observation for point in points}) == len(points) == number
        assert [point.seat for point in points] == sorted(point.seat for point in points)

    def test_leduc_is_sampled_by_default_and_kuhn_is_not(self) -> None:
        game = small_poker("leduc")
        assert [len(select_points_to_ask(game, sample)) for sample in (None, 0, 7, 936)] == [100, 936, 7, 936]
        assert len(select_points_to_ask(small_poker("kuhn"))) == 12
        whole, some = ([point.id for point in select_points_to_ask(game, sample)] for sample in (0, 50))
        assert some == [point.id for point in select_points_to_ask(game, 50)] == [name for name in whole if name in some]

    @pytest.mark.parametrize("sample", [-1, 13])
    def test_a_sample_that_cannot_be_is_refused(self, sample: int) -> None:
        with pytest.raises(ConfigError, match=f"poker/kuhn: .* {sample}; allowed: from 1 to 12"):
            select_points_to_ask(small_poker("kuhn"), sample)

    def test_other_scenarios_have_no_decision_points_and_no_rows(self) -> None:
        pack = show_pack()
        assert not has_decision_points(pack.scenario)
        plan = plan_of(pack)
        assert list(plan.list_point_requests()) == []
        assert valued(pack, answers(plan)) == []

    def test_a_first_decision_is_asked_with_the_messages_of_an_episode(self) -> None:
        bold = Player(MIXED.model, Persona(id="bold", version=2, display_name="Bold", system_prompt="Be bold."))
        for player in (MIXED, bold):
            told = {build_point_messages(KUHN_PACK, point, player) for point in select_points_to_ask(KUHN_PACK.scenario)}
            assert len(told) == 12
            assert all(build_opening_messages(KUHN_PACK, seed, player, 0) in told for seed in range(1, 7))

    def test_every_point_has_a_draw_before_any_has_a_second_one(self) -> None:
        assert [one.request.draw for one in plan_of(KUHN_PACK, draws=2).list_point_requests()] == [0] * 12 + [1] * 12

    def test_rows_of_earlier_runs_stay_unless_the_words_have_changed(self) -> None:
        plan, more = plan_of(KUHN_PACK, draws=2), plan_of(KUHN_PACK, draws=3)
        earlier = answers(more)
        merged = merge_point_answers(earlier, answers(plan), plan)
        assert len(merged) == 36
        assert merge_point_answers(merged, answers(plan), plan).equals(merged)
        assert len(merge_point_answers(with_column(earlier, "prompt_id", "other"), answers(plan), plan)) == 24
        # Two rows on one request: it was paid for once.
        twice = with_column(earlier, "request_key", "same")
        assert sum(merge_point_answers(twice, twice.slice(0, 0), plan)["cost_usd"].to_pylist()) == 0.5


class TestRows:
    def test_the_values_are_those_of_the_shares_that_were_drawn(self) -> None:
        game = small_poker("kuhn")
        played = {point.id: {point.legal[0]: 0.75, point.legal[-1]: 0.25} for point in select_points_to_ask(game)}
        rows = valued(KUHN_PACK, answers(plan_of(KUHN_PACK)))
        row = exploitable(rows)
        assert row["value"] == pytest.approx(true_exploitability(game, played))
        assert row["scale"] == pytest.approx(0.4583333)
        assert (row["n_points"], row["n_draws"], row["n_readable"]) == (12, 48, 48)
        for name, strategy in game.strategies.items():
            (row,) = chosen(rows, "mixed", "value", opponent=f"baseline/{name}")
            assert row["value"] == pytest.approx(true_mean(game, played, strategy))
            assert row["low"] < row["value"] < row["high"]

    def test_baselines_stand_beside_models_with_their_exact_values(self) -> None:
        rows = valued(KUHN_PACK, answers(plan_of(KUHN_PACK)).slice(0, 0))
        found = {row["model"]: row["value"] for row in rows if row["quantity"] == "exploitability_corrected"}
        known = {"baseline/nash": 0, "baseline/random": 0.4583333, "baseline/always-bet": 1 / 3, "baseline/always-pass": 1}
        assert found == pytest.approx(known, abs=1e-6)
        assert {(row["low"], row["n_draws"]) for row in rows} == {(None, None)}

    @pytest.mark.parametrize("fill", [None, "nash"])
    def test_a_point_without_a_readable_draw_makes_values_null_even_where_others_are_filled_in(self, fill: str | None) -> None:
        rows = answers(plan_of(KUHN_PACK), lambda point, draw: "hm" if point.id == "Q:bet" else three_to_one(point, draw))
        row = exploitable(valued(KUHN_PACK, rows, fill=fill))
        assert (row["value"], row["status"], row["n_missing"], row["filled_by"]) == (None, "unscored", 1, None)
        assert (row["n_draws"], row["n_readable"]) == (48, 44)
        assert "Q:bet" in row["reason"]

    def test_requests_without_a_response_are_distinguished_from_unreadable_ones(self) -> None:
        rows = answers(plan_of(KUHN_PACK), lambda point, draw: None if point.seat else three_to_one(point, draw))
        row = exploitable(valued(KUHN_PACK, rows))
        assert (row["value"], row["n_draws"], row["n_readable"]) == (None, 24, 24)
        assert "24 requests got no response" in row["reason"]

    def test_a_sample_has_values_only_where_a_baseline_was_asked_to_play_the_rest(self) -> None:
        rows = answers(plan_of(LEDUC_PACK, 20))
        row = exploitable(valued(LEDUC_PACK, rows, resamples=50))
        assert (row["value"], row["scale"], row["n_points"], row["n_missing"]) == (None, None, 20, 916)
        filled = valued(LEDUC_PACK, rows, fill="nash", resamples=50)
        row = exploitable(filled)
        assert (row["n_missing"], row["n_filled"], row["filled_by"], row["status"], row["n_points"]) == (
            *(0, 916, "nash", "partial", 20),
        )
        assert exploitable(filled, "baseline/nash")["status"] == "scored"
        # Play at random in 20 points of 936 is hardly worse than perfect play: that is the scale, not 2.37.
        assert 0 < row["scale"] < 0.3
        assert row["scale"] < row["value"] < 1

    def test_a_fill_that_is_no_baseline_and_too_few_resamples_are_refused(self) -> None:
        rows = answers(plan_of(KUHN_PACK))
        for options, message in (({"fill": "nahs"}, "'nahs': allowed: nash"), ({"resamples": 1}, "got 1; allowed: 2")):
            with pytest.raises(ConfigError, match=message):
                valued(KUHN_PACK, rows, **options)

    def test_answers_under_other_settings_are_no_part_of_a_strategy(self) -> None:
        other = with_column(answers(plan_of(KUHN_PACK)), "truth_id", "other")
        assert chosen(valued(KUHN_PACK, other), "mixed", "exploitability") == []


class TestValues:
    def test_one_draw_has_a_value_and_no_interval(self) -> None:
        game = small_poker("kuhn")
        found = worth(game, {**drawn(build_uniform_strategy(game), 4, np.random.default_rng(1)), "J:": ["bet"]}, resamples=10)
        assert found.exploitability.value is not None
        assert (found.corrected.value, found.against["nash"].low) == (None, None)
        assert found.against["nash"].value is not None
        assert "two readable draws" in found.corrected.reason

    def test_the_same_seed_gives_the_same_interval_and_the_order_of_draws_does_not_matter(self) -> None:
        game = small_poker("kuhn")
        readings = drawn(build_uniform_strategy(game), 6, np.random.default_rng(1))
        turned = {name: draws[::-1] for name, draws in reversed(readings.items())}
        first, second = worth(game, readings, resamples=50), worth(game, turned, resamples=50)
        assert (first.corrected, first.against) == (second.corrected, second.against)
        assert worth(game, readings, resamples=50, seed=2).against != first.against

    @pytest.mark.parametrize(("name", "loses"), [("always-bet", 1 / 3), ("always-pass", 1.0)])
    def test_draws_that_all_agree_give_the_exact_value_but_no_certainty(self, name: str, loses: float) -> None:
        game = small_poker("kuhn")
        found = worth(game, drawn(game.strategies[name], 4, np.random.default_rng(1)), resamples=100)
        assert found.exploitability.value == pytest.approx(loses)
        assert found.corrected.value == pytest.approx(loses)
        assert found.corrected.low is not None
        assert found.corrected.high is not None
        assert found.corrected.low < loses < found.corrected.high
        assert found.against[name].value == pytest.approx(0)

    @pytest.mark.parametrize("evenness", [0.1, 1.0])
    def test_intervals_hold_the_truth_of_simulated_players(self, evenness: float) -> None:
        """Plain resampling of draws held it for half of the players that almost always do the same."""
        game, rng, players = small_poker("kuhn"), np.random.default_rng(11), 100
        nash, value_held, exploitability_held, as_drawn, corrected = game.strategies["nash"], 0, 0, 0.0, 0.0
        for seed in range(players):
            player = random_strategy(game, rng, evenness)
            truth = true_exploitability(game, player)
            found = worth(game, drawn(player, 8, rng), resamples=60, seed=seed)
            mean, exploited = found.against["nash"], found.corrected
            assert None not in (mean.low, mean.high, exploited.low, exploited.high, exploited.value, found.exploitability.value)
            value_held += (mean.low or 0) <= true_mean(game, player, nash) + 1e-9 <= (mean.high or 0) + 2e-9
            exploitability_held += (exploited.low or 0) <= truth <= (exploited.high or 0)
            as_drawn += (found.exploitability.value or 0) - truth
            corrected += (exploited.value or 0) - truth
        assert value_held / players >= 0.9
        assert exploitability_held / players >= 0.88
        assert abs(corrected) / players < max(0.012, as_drawn / players)

    def test_draws_make_a_perfect_player_look_exploitable_and_the_correction_takes_most_of_it_off(self) -> None:
        game = small_poker("leduc without suits")
        truth = true_exploitability(game, build_uniform_strategy(game))
        found = worth(game, drawn(build_uniform_strategy(game), 5, np.random.default_rng(6)), resamples=60)
        as_drawn, corrected = found.exploitability.value, found.corrected.value
        assert as_drawn is not None
        assert corrected is not None
        assert as_drawn - truth > 0.2
        assert abs(corrected - truth) < (as_drawn - truth) / 2

    def test_nobody_wins_from_perfect_play(self) -> None:
        game = small_poker("leduc")
        found = compute_exact_values(game, game.strategies["nash"])
        assert found.exploitability.value == pytest.approx(0, abs=0.001)
        assert all(one.value is not None and one.value > -0.001 for one in found.against.values())
