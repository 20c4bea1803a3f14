"""The hybrid score: coverage of a rubric and similarity to an ideal answer in one number, linear in the weight of the similarity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Hybrid(NamedTuple):
    """The hybrid score of each row at every weight of the similarity, (rows,) each; NaN: unscored."""

    intercept: Floats
    """The score if similarity has weight 0, 0-1."""
    slope: Floats
    """Change of the score as the weight goes from 0 to 1, -1 to 1."""


def compute_hybrid(
    coverage: npt.ArrayLike, similarity: npt.ArrayLike, has_criteria: npt.ArrayLike, has_ideal: npt.ArrayLike
) -> Hybrid:
    """Return beta max(0, similarity) + (1 - beta) coverage (weval methodology, 5.1), all (rows,).

    If the prompt has only criteria or only an ideal answer, that part is the score at every beta. The score is NaN if a part that the
    prompt defines is NaN, or if it defines neither.
    """
    coverages = np.asarray(coverage, dtype=np.float64)
    similar = np.maximum(np.asarray(similarity, dtype=np.float64), 0.0)
    rubric, ideal = np.asarray(has_criteria, dtype=bool), np.asarray(has_ideal, dtype=bool)
    intercept = np.where(rubric, coverages, np.where(ideal, similar, np.nan))
    slope = np.where(rubric & ideal, similar - coverages, 0.0)
    is_missing = np.isnan(intercept) | np.isnan(slope)
    return Hybrid(np.where(is_missing, np.nan, intercept), np.where(is_missing, np.nan, slope))


def compute_hybrid_at(intercept: npt.ArrayLike, slope: npt.ArrayLike, beta: float) -> Floats:
    """Return intercept + beta slope, the score at a weight of the similarity, as every board and the report's slider compute it.

    Means of hybrid scores are linear in beta, too, so this also applies to means. Raises ConfigError if beta is outside 0-1.
    """
    return np.asarray(intercept, dtype=np.float64) + require_beta(beta) * np.asarray(slope, dtype=np.float64)


DOCUMENT, TWO_GROUP = "document", "two_group"
OR_PATHS = (DOCUMENT, TWO_GROUP)
"""How alternative paths count: as one point of weight 1 (weval methodology, 4.2), or as much as all required points (upstream's code)."""
WORST_PATH, HIGHEST_PATH = "worst", "max"
SHOULD_NOT_PATHS = (WORST_PATH, HIGHEST_PATH)
"""Which alternative path of should_not counts: the most fulfilled one, or the least (upstream's code)."""
OFFLINE_EMBEDDER = "local/minilm-l6-int8"


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """The settings of scoring. Raises ConfigError if a value is not allowed."""

    beta: float = 0.35
    """Weight of the similarity in the hybrid score, 0-1."""
    or_paths: str = DOCUMENT
    """document | two_group."""
    should_not_paths: str = WORST_PATH
    """worst | max."""
    embedder: str = OFFLINE_EMBEDDER
    """Default embedding model for similarity."""

    def __post_init__(self) -> None:
        require_beta(self.beta)
        _require_one_of("or_paths", self.or_paths, OR_PATHS)
        _require_one_of("should_not_paths", self.should_not_paths, SHOULD_NOT_PATHS)
        if not isinstance(self.embedder, str) or not self.embedder.strip():
            raise ConfigError(
                f"policy embedder: got {self.embedder!r}; allowed: the name of an embedder, such as {OFFLINE_EMBEDDER}"
            )

    @property
    def policy_hash(self) -> str:
        """32 hexadecimal digits, equal for policies that give the same scores."""
        return digest("policy", float(self.beta), self.or_paths, self.should_not_paths, self.embedder)


def require_beta(beta: float) -> float:
    """Return the weight of the similarity. Raises ConfigError unless it is a number from 0 to 1."""
    is_number = isinstance(beta, int | float) and not isinstance(beta, bool)
    if not is_number or not math.isfinite(beta) or not 0 <= beta <= 1:
        raise ConfigError(f"policy beta: got {beta!r}; allowed: a number from 0 (only coverage) to 1 (only similarity)")
    return float(beta)


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"policy {name}: got {value!r}; allowed: {', '.join(choices)}")
