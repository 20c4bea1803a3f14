"""Decision points: all information sets, asked as an episode asks them, and what draws or probabilities say of a strategy."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.decision_points import decision_points, draw_counts, strategy_of_draws, strategy_of_weights
from tests.made.small_poker import small_poker


@pytest.mark.parametrize(("name", "number"), [("kuhn", 12), ("leduc", 936), ("leduc without suits", 288)])
def test_every_information_set_is_one_point(name: str, number: int) -> None:
    points = decision_points(small_poker(name))
    assert len({point.id for point in points}) == len({point.observation for point in points}) == len(points) == number
    assert [point.seat for point in points] == sorted(point.seat for point in points)


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_a_point_is_asked_as_an_episode_asks_it(name: str) -> None:
    game, rng, seen = small_poker(name), np.random.default_rng(2), 0
    by_id = {point.id: point for point in decision_points(game)}
    for seed in range(30):
        state = game.reset(seed, (0, 1))
        while (seat := game.to_move(state)) is not None:
            point, seen = by_id[game.information(state, seat)], seen + 1
            assert (point.seat, point.observation, point.legal) == (
                seat,
                game.observation(state, seat),
                game.legal(state, seat),
            )
            for text in ("ACTION: bet", "call", "hm"):
                assert game.read(text, point.state, point.seat) == game.read(text, state, seat)
            state = game.step(state, seat, str(rng.choice(game.legal(state, seat))))
    assert seen > 60


def test_a_sample_is_part_of_the_whole_and_depends_on_the_seed_alone() -> None:
    game = small_poker("leduc")
    whole, some = (
        [point.id for point in decision_points(game)],
        [point.id for point in decision_points(game, sample=50, seed=3)],
    )
    assert some == [point.id for point in decision_points(game, sample=50, seed=3)]
    assert some != [point.id for point in decision_points(game, sample=50, seed=4)]
    assert len(some) == 50
    assert some == [name for name in whole if name in some]
    assert len(decision_points(game, sample=936)) == 936


@pytest.mark.parametrize("sample", [0, -1, 13])
def test_a_sample_that_cannot_be_is_refused(sample: int) -> None:
    with pytest.raises(ConfigError, match=f"poker/kuhn: got a sample of {sample}; allowed: from 1 to 12 decision points"):
        decision_points(small_poker("kuhn"), sample=sample)


def test_a_strategy_is_the_share_among_readable_draws_and_the_others_are_counted_apart() -> None:
    points = decision_points(small_poker("kuhn"))
    draws = ["bet", "check", "bet", Illegal("no"), Illegal("?", "unparsed"), Illegal("I do not play", "refused"), "bet"]
    counts = draw_counts(points, {"J:": draws, "Q:": [Illegal("no")], "K:": []})
    assert counts["J:"].commands == {"check": 1, "bet": 3}
    found = counts["J:"]
    assert (found.draws, found.readable, found.illegal, found.unparsed, found.refused) == (7, 4, 1, 1, 1)
    assert strategy_of_draws(counts) == {"J:": {"check": 0.25, "bet": 0.75}}
    assert (counts["Q:"].draws, counts["K:"].draws) == (1, 0)


def test_draws_of_unknown_points_and_illegal_commands_are_refused() -> None:
    points = decision_points(small_poker("kuhn"))
    with pytest.raises(ConfigError, match="decision point A:: not known; allowed: "):
        draw_counts(points, {"A:": ["bet"]})
    with pytest.raises(ConfigError, match="decision point J:: got raise; allowed: check, bet"):
        draw_counts(points, {"J:": ["bet", "raise"]})


def test_probabilities_of_letters_are_scaled_and_none_is_made_up() -> None:
    points = decision_points(small_poker("kuhn"))
    found = strategy_of_weights(
        points,
        {"J:": {"bet": 0.2, "check": 0.6}, "Q:": {"bet": 0.0}, "K:": {"bet": 1e-320}, "J:bet": {"fold": 1e308, "call": 1e308}},
    )
    assert found["J:"] == pytest.approx({"check": 0.75, "bet": 0.25})
    assert found["K:"] == {"check": 0, "bet": 1}
    assert found["J:bet"] == {"fold": 0.5, "call": 0.5}
    assert set(found) == {"J:", "K:", "J:bet"}


@pytest.mark.parametrize("given", [{"bet": -0.1}, {"bet": float("nan")}, {"bet": float("inf")}, {"call": 0.5}])
def test_numbers_that_are_no_probabilities_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"decision point J:: got .*; allowed: finite numbers from 0 on for check, bet"):
        strategy_of_weights(decision_points(small_poker("kuhn")), {"J:": given})
    with pytest.raises(ConfigError, match="decision point Z: not known"):
        strategy_of_weights(decision_points(small_poker("kuhn")), {"Z": {"bet": 1.0}})
