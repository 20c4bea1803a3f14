"""The pages of the two scenarios say what baselines win from each other."""

from __future__ import annotations

from typing import Any

import pytest

from dtef_pipeline.games.baselines import baseline_rng, baselines_of
from dtef_pipeline.games.contract import Scenario
from tests.conftest import ROOT
from tests.made.negotiations import an_allocation, an_auction


def reward(game: Scenario[Any], seed: int, players: dict[int, str], seat: int) -> float:
    baselines = baselines_of(game)
    rngs = {at: baseline_rng(seed, at) for at in players}
    state = game.reset(seed, (0, 1))
    while (mover := game.to_move(state)) is not None:
        state = game.step(state, mover, baselines[players[mover]](state, mover, rngs[mover]))
    result = game.result(state)
    assert result is not None
    return result.rewards[seat]


def mean_reward(game: Scenario[Any], own: str, other: str) -> float:
    rewards = [reward(game, seed, {seat: own, 1 - seat: other}, seat) for seed in range(1, 101) for seat in (0, 1)]
    return sum(rewards) / len(rewards)


@pytest.mark.parametrize(("page", "game"), [("allocation", an_allocation()), ("sealed-bid", an_auction(price="second"))])
def test_the_table_of_baselines_is_what_they_win(page: str, game: Scenario[Any]) -> None:
    lines = (ROOT / "docs" / "scenarios" / f"{page}.md").read_text(encoding="utf-8").splitlines()
    header = next(line for line in lines if line.startswith("| | `"))
    names = [cell.strip(" `") for cell in header.split("|")[2:-1]]
    assert set(names) == set(baselines_of(game)) - {"first-legal"}
    for number, own in enumerate(names, lines.index(header) + 2):
        first, *shown = [cell.strip(" `") for cell in lines[number].split("|")[1:-1]]
        assert first == own
        assert [float(cell) for cell in shown] == pytest.approx([mean_reward(game, own, other) for other in names], abs=0.006)
