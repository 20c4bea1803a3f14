"""Policies that learn what each model is good at: the score as a linear function of what is known of an item before it is asked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dtef_pipeline.qa.policies.choosers import best

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class _Linear:
    """A ridge regression (penalty 1) of each model's scores on the features, for each run: theta = A^-1 b, with A = I + sum x x'.

    Its inverse is updated by the formula of Sherman & Morrison (1950).
    """

    def __init__(self, runs: int, models: int, features: int) -> None:
        self.inverse = np.tile(np.eye(features), (runs, models, 1, 1))
        self.sums = np.zeros((runs, models, features))
        self._runs = np.arange(runs)

    def expected(self, features: Floats) -> tuple[Floats, Floats]:
        """(runs, models) the mean score x' theta and its deviation sqrt(x' A^-1 x), of the items with these features (runs, features)."""
        directed = (self.inverse @ features[:, None, :, None])[..., 0]
        mean = (directed * self.sums).sum(axis=2)
        return mean, np.sqrt(np.maximum((directed @ features[:, :, None])[..., 0], 0))

    def learn(self, chosen: Codes, score: Floats, features: Floats) -> None:
        inverse = self.inverse[self._runs, chosen]
        directed = (inverse @ features[:, :, None])[..., 0]
        shrink = 1 + (directed * features).sum(axis=1)
        self.inverse[self._runs, chosen] = inverse - directed[:, :, None] * directed[:, None, :] / shrink[:, None, None]
        self.sums[self._runs, chosen] += score[:, None] * features


class LinUcb(_Linear):
    """The model with the greatest x' theta + alpha sqrt(x' A^-1 x), alpha 1: each model has a regression of its own ("disjoint").

    Source: Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation, algorithm 1.
    """

    alpha = 1.0

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        mean, deviation = self.expected(features)
        return best(mean + self.alpha * deviation, rng)


class ContextualThompson(_Linear):
    """A draw of each model's score from a normal distribution of mean x' theta and deviation v sqrt(x' A^-1 x), v .25; the greatest draw wins.

    That is the score of an item under theta drawn from N(theta, v^2 A^-1), whose models are independent.

    Source: Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs, algorithm 1, with a regression for each model.
    """

    v = 0.25

    def choose(self, features: Floats, rng: np.random.Generator) -> Codes:
        mean, deviation = self.expected(features)
        return best(mean + self.v * deviation * rng.standard_normal(mean.shape), rng)
