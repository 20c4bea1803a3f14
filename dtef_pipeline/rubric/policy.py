"""What scores depend on besides responses and verdicts: the weights and readings that people may choose, and their hash."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest

DOCUMENT, TWO_GROUP = "document", "two_group"
OR_PATHS = (DOCUMENT, TWO_GROUP)
"""How alternative paths count: as one point of weight 1 (weval methodology, 4.2), or as much as all required points (upstream's code)."""
WORST_PATH, HIGHEST_PATH = "worst", "max"
SHOULD_NOT_PATHS = (WORST_PATH, HIGHEST_PATH)
"""Which of the alternative paths of what a response is not to have counts: the most fulfilled one, or the least (upstream's code)."""
OFFLINE_EMBEDDER = "local/minilm-l6-int8"


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """How responses are scored. Raises ConfigError for a value that is not allowed."""

    beta: float = 0.35
    """Weight of the similarity in the hybrid score, 0-1."""
    or_paths: str = DOCUMENT
    """document | two_group."""
    should_not_paths: str = WORST_PATH
    """worst | max."""
    embedder: str = OFFLINE_EMBEDDER
    """What makes the vectors whose similarity is measured."""

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
        """32 hexadecimal digits, equal for policies that score alike."""
        return digest("policy", float(self.beta), self.or_paths, self.should_not_paths, self.embedder)


def require_beta(beta: float) -> float:
    """The weight of the similarity. Raises ConfigError for anything but a number from 0 to 1."""
    is_number = isinstance(beta, int | float) and not isinstance(beta, bool)
    if not is_number or not math.isfinite(beta) or not 0 <= beta <= 1:
        raise ConfigError(f"policy beta: got {beta!r}; allowed: a number from 0 (coverage alone) to 1 (similarity alone)")
    return float(beta)


def _require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"policy {name}: got {value!r}; allowed: {', '.join(allowed)}")
