"""What a strategy that was read off decision points is worth: exact where it is known, null where it is not, and honest about draws."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.exact_play import exact_game
from dtef_pipeline.games.small_poker import SmallPoker
from dtef_pipeline.games.strategies import Strategy, uniform
from dtef_pipeline.games.strategy_values import StrategyValues, values_of_probabilities, values_of_readings
from tests.made.small_poker import random_strategy, small_poker

KUHN = "kuhn"


def drawn(strategy: Strategy, draws: int, rng: np.random.Generator) -> dict[str, list[str | Illegal]]:
    """So many commands per information set, as a player of a strategy draws them."""
    return {name: [str(one) for one in rng.choice([*shares], draws, p=[*shares.values()])] for name, shares in strategy.items()}


def always(strategy: Strategy, draws: int = 4) -> dict[str, list[str | Illegal]]:
    """Draws of a player that always plays the most probable command."""
    return {name: [max(shares, key=shares.__getitem__)] * draws for name, shares in strategy.items()}


def true_mean(game: SmallPoker, strategy: Strategy, other: Strategy) -> float:
    exact = exact_game(game)
    first = exact.value(exact.vector(strategy, 0), exact.vector(other, 1))
    return float(first - exact.value(exact.vector(other, 0), exact.vector(strategy, 1))) / 2


def true_exploitability(game: SmallPoker, strategy: Strategy) -> float:
    exact = exact_game(game)
    return float(exact.exploitability(exact.vector(strategy, 0), exact.vector(strategy, 1)))


def wins(found: StrategyValues, baseline: str) -> tuple[float | None, float | None, float | None]:
    (row,) = [one for one in found.against if one.baseline == baseline]
    return row.first.value, row.second.value, row.mean.value


def test_a_uniform_player_is_worth_what_is_known() -> None:
    game = small_poker(KUHN)
    found = values_of_probabilities(game, uniform(game))
    assert found.exploitability.value == pytest.approx(0.4583333)
    assert found.exploitability_corrected.value == pytest.approx(0.4583333)
    assert found.uniform_exploitability == pytest.approx(0.4583333)
    assert wins(found, "random") == pytest.approx((0.125, -0.125, 0), abs=1e-9)
    assert found.exploitability.low is None
    assert found.exploitability.reason == "probabilities were given, not draws"
    assert {one.baseline for one in found.against} == {"nash", "always-bet", "always-pass", "random"}


@pytest.mark.parametrize(("name", "loses"), [("always-bet", 1 / 3), ("always-pass", 1.0)])
def test_draws_that_all_agree_give_the_exact_value_but_no_certainty(name: str, loses: float) -> None:
    game = small_poker(KUHN)
    found = values_of_readings(game, always(game.strategies[name]), resamples=100)
    assert found.exploitability.value == pytest.approx(loses)
    assert found.exploitability_corrected.value == pytest.approx(loses)
    low, high = found.exploitability_corrected.low, found.exploitability_corrected.high
    assert low is not None
    assert high is not None
    assert low < loses < high
    assert wins(found, name)[2] == pytest.approx(0)


def test_nobody_wins_from_perfect_play_and_perfect_play_loses_nothing() -> None:
    game = small_poker("leduc")
    found = values_of_probabilities(game, game.strategies["nash"])
    assert found.exploitability.value == pytest.approx(0, abs=0.001)
    assert all(one.mean.value is not None and one.mean.value > -0.001 for one in found.against)


def test_a_point_without_a_readable_draw_makes_every_value_null_with_the_reason() -> None:
    game = small_poker(KUHN)
    readings = {**always(uniform(game)), "Q:": [Illegal("no"), Illegal("no", "refused")], "K:": []}
    found = values_of_readings(game, readings, resamples=10)
    assert found.missing == ("Q:", "K:") or set(found.missing) == {"Q:", "K:"}
    assert found.exploitability.value is None
    assert found.exploitability.reason.startswith("no strategy in 2 information sets: ")
    assert wins(found, "nash") == (None, None, None)
    assert "Q:" not in found.strategy
    assert found.counts["Q:"].refused == 1


def test_points_are_filled_in_only_where_that_is_asked_for_and_it_is_said() -> None:
    game = small_poker(KUHN)
    nash = game.strategies["nash"]
    some = {name: draws for name, draws in always(game.strategies["always-bet"]).items() if name.startswith("J")}
    assert len(values_of_readings(game, some, resamples=10).missing) == 8
    found = values_of_readings(game, some, fill=nash, resamples=50)
    assert not found.missing
    assert len(found.filled) == 8
    mixed = {**nash, **{name: shares for name, shares in game.strategies["always-bet"].items() if name.startswith("J")}}
    assert found.exploitability.value == pytest.approx(true_exploitability(game, mixed))
    assert wins(found, "nash")[2] == pytest.approx(true_mean(game, mixed, nash))


def test_one_draw_has_a_value_and_no_interval() -> None:
    game = small_poker(KUHN)
    found = values_of_readings(game, {**always(uniform(game)), "J:": ["bet"]}, resamples=10)
    assert found.exploitability.value is not None
    assert found.exploitability_corrected.value is None
    assert found.exploitability_corrected.reason == "an interval needs two readable draws in every information set"
    assert found.against[0].mean.value is not None
    assert found.against[0].mean.low is None


def test_the_same_seed_gives_the_same_interval_and_the_order_of_draws_does_not_matter() -> None:
    game, rng = small_poker(KUHN), np.random.default_rng(1)
    readings = drawn(uniform(game), 6, rng)
    turned: Mapping[str, list[str | Illegal]] = {name: draws[::-1] for name, draws in reversed(readings.items())}
    first, second = values_of_readings(game, readings, resamples=50), values_of_readings(game, turned, resamples=50)
    assert first.exploitability_corrected == second.exploitability_corrected
    assert first.against == second.against
    assert values_of_readings(game, readings, resamples=50, seed=2).against != first.against


def test_losses_name_the_decisions_that_cost_most() -> None:
    game = small_poker(KUHN)
    timid = {**game.strategies["nash"], "K:bet": {"fold": 1.0}}
    found = values_of_probabilities(game, timid)
    worst, lost = next(iter(found.losses.items()))
    assert worst == "K:bet"
    # Cards J against K: 1/6 of deals, in a third of which the first seat of `nash` bets; to fold loses 1 chip, to call wins 2.
    assert lost == pytest.approx(1 / 6 * 1 / 3 * 3)
    assert sum(found.losses.values()) == pytest.approx(lost)
    assert wins(found, "nash")[1] == pytest.approx(1 / 18 - lost)


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match="resamples: got 1; allowed: 2 or more"):
        values_of_readings(small_poker(KUHN), {}, resamples=1)


def test_more_draws_shorten_intervals_by_the_root_of_their_number() -> None:
    game = small_poker(KUHN)
    widths = []
    for draws in (50, 450):
        found = values_of_readings(
            game, {name: [*shares] * (draws // 2) for name, shares in uniform(game).items()}, resamples=400
        )
        mean = found.against[0].mean
        assert mean.low is not None
        assert mean.high is not None
        widths.append(mean.high - mean.low)
    assert widths[0] / widths[1] == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize("evenness", [0.1, 1.0])
def test_intervals_hold_the_truth_of_simulated_players(evenness: float) -> None:
    """Plain resampling of draws held it for half of the players that almost always do the same."""
    game, rng, players = small_poker(KUHN), np.random.default_rng(11), 150
    nash, value_held, exploitability_held, as_drawn, corrected = game.strategies["nash"], 0, 0, 0.0, 0.0
    for seed in range(players):
        player = random_strategy(game, rng, evenness)
        truth = true_exploitability(game, player)
        found = values_of_readings(game, drawn(player, 8, rng), resamples=100, seed=seed)
        mean, exploited = found.against[0].mean, found.exploitability_corrected
        assert None not in (mean.low, mean.high, exploited.low, exploited.high, exploited.value, found.exploitability.value)
        value_held += (mean.low or 0) <= true_mean(game, player, nash) + 1e-9 <= (mean.high or 0) + 2e-9
        exploitability_held += (exploited.low or 0) <= truth <= (exploited.high or 0)
        as_drawn += (found.exploitability.value or 0) - truth
        corrected += (exploited.value or 0) - truth
    assert value_held / players >= 0.9
    assert exploitability_held / players >= 0.88
    assert abs(corrected) / players < max(0.012, as_drawn / players)


def test_draws_make_a_perfect_player_look_exploitable_and_the_correction_takes_most_of_it_off() -> None:
    game, rng = small_poker("leduc without suits"), np.random.default_rng(6)
    truth = true_exploitability(game, uniform(game))
    found = values_of_readings(game, drawn(uniform(game), 5, rng), resamples=60)
    drawn_value, corrected = found.exploitability.value, found.exploitability_corrected.value
    assert drawn_value is not None
    assert corrected is not None
    assert drawn_value - truth > 0.2
    assert abs(corrected - truth) < (drawn_value - truth) / 2
