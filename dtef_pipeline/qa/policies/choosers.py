"""Policies that learn from scores alone: how good each model was so far, not what is asked.

Each plays many runs at once, one per seed, that know nothing of each other: arrays are (runs, models). Scores are 0-1, higher is better.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
EXPLORED_SHARE = 0.1
"""Share of the items that epsilon-greedy spends on a model drawn at random."""


class Chooser(Protocol):
    """Chooses a model for the next item of each run, and learns how good it was."""

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        """(runs,) the chosen models. `features` (runs, features): of each run's next item."""

    def learn(self, chosen: Codes, score: Floats, features: Floats) -> None:
        """What the chosen models were scored, (runs,) each."""


def best(values: Floats, rng: np.random.Generator) -> Codes:
    """(runs,) the column of each row's greatest value of `values` (runs, models); among equal ones each is as likely."""
    lots = np.where(values == values.max(axis=1, keepdims=True), rng.random(values.shape), -1.0)
    return np.asarray(lots.argmax(axis=1))


class _Means:
    """Times that each model was chosen, and its mean score: a running mean, infinite before its first time, so that each is tried once."""

    def __init__(self, runs: int, models: int) -> None:
        self.times = np.zeros((runs, models))
        self.sums = np.zeros((runs, models))
        self._runs = np.arange(runs)

    @property
    def means(self) -> Floats:
        return np.asarray(np.divide(self.sums, self.times, out=np.full(self.sums.shape, np.inf), where=self.times > 0))

    def learn(self, chosen: Codes, score: Floats, features: Floats) -> None:
        self.times[self._runs, chosen] += 1
        self.sums[self._runs, chosen] += score


class EpsilonGreedy(_Means):
    """The best model so far, and with the chance epsilon one at random.

    Source: Sutton & Barto (2018), Reinforcement learning, 2.2; epsilon .1.
    """

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        runs, models = self.times.shape
        explores = rng.random(runs) < EXPLORED_SHARE
        return np.where(explores, rng.integers(models, size=runs), best(self.means, rng))


class Ucb1(_Means):
    """The model with the greatest mean + sqrt(2 ln n / n_j), of n items so far and n_j that it had; each model is tried once first.

    Source: Auer, Cesa-Bianchi & Fischer (2002), Finite-time analysis of the multiarmed bandit problem, figure 1.
    """

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        n = np.maximum(self.times.sum(axis=1, keepdims=True), 1)
        reach = np.divide(2 * np.log(n), self.times, out=np.zeros_like(self.times), where=self.times > 0)
        return best(self.means + np.sqrt(reach), rng)


class Thompson:
    """A draw of each model's mean score from Beta(1 + sum of scores, 1 + sum of (1 - score)); the model with the greatest draw.

    Source: Thompson (1933); Agrawal & Goyal (2012), Analysis of Thompson sampling for the multi-armed bandit problem. A score between 0 and 1
    counts in parts as good and as bad, in place of their coin toss with this chance.
    """

    def __init__(self, runs: int, models: int) -> None:
        self.good, self.bad = np.ones((runs, models)), np.ones((runs, models))
        self._runs = np.arange(runs)

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        return best(rng.beta(self.good, self.bad), rng)

    def learn(self, chosen: Codes, score: Floats, features: Floats) -> None:
        self.good[self._runs, chosen] += score
        self.bad[self._runs, chosen] += 1 - score


class AtRandom:
    """Every model as likely, whatever was learnt."""

    def __init__(self, runs: int, models: int) -> None:
        self._runs, self._models = runs, models

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        return rng.integers(self._models, size=self._runs)

    def learn(self, chosen: Codes, score: Floats, features: Floats) -> None:
        """Nothing is learnt."""


class Dueling:
    """Two models for each item, of which only is learnt which was better: the relative upper confidence bound (RUCB), alpha .51.

    With w_ij the duels that i won of j (a draw counts half for both): u_ij = w_ij / (w_ij + w_ji) + sqrt(alpha ln t / (w_ij + w_ji)), 1/2 for
    i = j, and 1 where they never met. The first model is one whose u are all 1/2 or more: the one that was last the only such with the chance
    1/2, else any of the others; without any it is drawn at random. The second is the one with the greatest u against it.

    Source: Zoghi, Whiteson, Munos & de Rijke (2014), Relative upper confidence bound for the k-armed dueling bandit problem, algorithm 1.
    """

    alpha = 0.51

    def __init__(self, runs: int, models: int) -> None:
        self.wins = np.zeros((runs, models, models))
        self._held = np.full(runs, -1)
        self._runs = np.arange(runs)
        self._time = 0

    def pair(self, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """(runs,) the first and the second model; they may be the same."""
        self._time += 1
        bounds = self._bounds()
        first = self._champion(np.asarray((bounds >= 0.5).all(axis=2)), rng)
        against = bounds[self._runs, :, first]
        against[self._runs, first] -= 1e-9  # of equal ones another model
        return first, best(against, rng)

    def _champion(self, could: npt.NDArray[np.bool_], rng: np.random.Generator) -> Codes:
        """(runs,) the first model, of those that `could` (runs, models) be the best one."""
        count = could.sum(axis=1)
        stays = np.asarray((self._held >= 0) & could[self._runs, np.maximum(self._held, 0)])
        among = np.where((count == 0)[:, None], True, could)
        # With several, the one that is held has its half of the chance, and the others share the rest.
        among[self._runs[stays & (count > 1)], self._held[stays & (count > 1)]] = False
        other = np.where(among, rng.random(among.shape), -1.0).argmax(axis=1)
        self._held = np.where(count == 1, could.argmax(axis=1), np.where(stays, self._held, -1))
        return np.where(stays & (count > 1) & (rng.random(len(count)) < 0.5), self._held, other)

    def learn_duel(self, first: Codes, second: Codes, better: Floats) -> None:
        """How the duels ended, (runs,): 1 where the first was better, 0 where the second was, 1/2 where neither was."""
        apart = first != second
        runs = self._runs[apart]
        self.wins[runs, first[apart], second[apart]] += better[apart]
        self.wins[runs, second[apart], first[apart]] += 1 - better[apart]

    def _bounds(self) -> Floats:
        met = self.wins + self.wins.transpose(0, 2, 1)
        share = np.divide(self.wins, met, out=np.ones_like(met), where=met > 0)
        reach = np.divide(self.alpha * np.log(self._time), met, out=np.zeros_like(met), where=met > 0)
        bounds = share + np.sqrt(reach)
        bounds[:, np.arange(met.shape[1]), np.arange(met.shape[1])] = 0.5
        return np.asarray(bounds)
