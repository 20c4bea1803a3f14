"""Writes the strategy that `baseline/nash` plays in Leduc poker, `dtef_pipeline/games/leduc_strategy.json`.

    python -m data.make_leduc_strategy [PASSES]

It is found by CFR+ (Tammelin, Solving large imperfect information games using CFR+, 2014): each pass lets one seat, then the other, move
towards the commands that it regrets not having chosen. The mean of all passes, weighted by their number, comes close to perfect play.
Nothing is drawn at random: the same PASSES (1000 where none are named) give the same file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.exact_play import ExactGame, Reals, build_exact_game
from dtef_pipeline.games.leduc import Leduc
from dtef_pipeline.games.manifest import read_manifest

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "dtef_pipeline" / "games" / "leduc_strategy.json"
DECIMALS = 4


class RegretMatching:
    """One seat that learns: its regrets, and the sum of what it has played."""

    def __init__(self, game: ExactGame, seat: int) -> None:
        self.game, self.seat = game, seat
        size = game.seats[seat].size
        self.regrets, self.played = np.zeros(size), np.zeros(size)

    def choices(self) -> Reals:
        """How often it now chooses each command: in proportion to regret."""
        return self._shares(self.regrets)

    def mean(self) -> Reals:
        """How often it chose each command, on average over all passes."""
        return self._shares(self.played)

    def learn(self, other: Reals, weight: float) -> None:
        """One pass against the choices of the other seat."""
        won, now = self.game.against(other, 1 - self.seat), self.choices()
        for level in reversed(self.game.seats[self.seat].levels):
            values = won[level.choices + 1]
            means = np.add.reduceat(values * now[level.choices], level.starts)
            self.regrets[level.choices] = np.maximum(self.regrets[level.choices] + values - means[level.owner], 0)
            np.add.at(won, level.before, means)
        self.played += weight * self.game.weights(self.choices(), self.seat)[1:]

    def _shares(self, amounts: Reals) -> Reals:
        found = np.empty_like(amounts)
        for point in self.game.seats[self.seat].points:
            part, total = amounts[point.places], amounts[point.places].sum()
            found[point.places] = part / total if total > 0 else 1 / len(part)
        return found


def solved(game: ExactGame, passes: int) -> tuple[RegretMatching, RegretMatching]:
    """Both seats after so many passes."""
    seats = RegretMatching(game, 0), RegretMatching(game, 1)
    for number in range(1, passes + 1):
        seats[0].learn(seats[1].choices(), number)
        seats[1].learn(seats[0].choices(), number)
    return seats


def table(game: ExactGame, seats: tuple[RegretMatching, RegretMatching]) -> dict[str, dict[str, float]]:
    """The mean strategies by information set, with probabilities that are rounded and sum to 1."""
    found: dict[str, dict[str, float]] = {}
    for learner in seats:
        mean = learner.mean()
        for point in game.seats[learner.seat].points:
            rounded = dict(zip(point.legal, (round(float(share), DECIMALS) for share in mean[point.places]), strict=True))
            most = max(rounded, key=rounded.__getitem__)
            rounded[most] = round(rounded[most] + 1 - sum(rounded.values()), DECIMALS)
            found[point.name] = {command: share for command, share in rounded.items() if share > 0}
    return dict(sorted(found.items()))


def main(passes: int = 1000) -> None:
    leduc = Leduc(read_manifest(ROOT / "data" / "scenarios" / "poker" / "leduc.yaml"), suits=False)
    game = build_exact_game(leduc)
    found = table(game, solved(game, passes))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(shares)}" for name, shares in found.items())
    TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    first, second = game.vector(found, 0), game.vector(found, 1)
    value, exploitability = game.value(first, second), game.exploitability(first, second)
    print(f"{TABLE}: {len(found)} information sets, value of the first seat {value:.5f}, exploitability {exploitability:.5f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
