"""What a researcher chooses about prompts, and what those choices may be."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from dtef_pipeline.errors import ConfigError

SELECTIONS = ("survey-order", "random")
FORMATS = ("attribute-label",)


@dataclass(frozen=True, slots=True)
class BlueprintOptions:
    """How blueprints are made. Raises ConfigError naming the option, what arrived and what is allowed.

    `context_levels`: numbers of context questions, or `all`. `token_budget`: tokens of prompt and answer together, of which
    `answer_reserve` are kept for the answer. `seed` matters to the `random` selection alone.
    """

    context_levels: tuple[str, ...] = ("0",)
    selection: str = "survey-order"
    seed: int = 20_260_101
    token_budget: int = 4096
    answer_reserve: int = 256
    show_n: bool = False
    format: str = "attribute-label"

    def __post_init__(self) -> None:
        for level in self.context_levels:
            if level != "all" and not (level.isascii() and level.isdigit() and len(level) < 7 and str(int(level)) == level):
                raise ConfigError(f"context level {level!r}: allowed: a whole number such as 0, 5, 10, or all")
        if not self.context_levels:
            raise ConfigError("no context level given: allowed: a whole number such as 0, 5, 10, or all")
        if self.selection not in SELECTIONS:
            raise ConfigError(f"context selection {self.selection!r}: allowed: {', '.join(SELECTIONS)}")
        if self.format not in FORMATS:
            raise ConfigError(f"format {self.format!r}: allowed: {', '.join(FORMATS)}")
        if not 0 <= self.answer_reserve < self.token_budget:
            raise ConfigError(
                f"token budget {self.token_budget} with {self.answer_reserve} kept for the answer: "
                "allowed: a reserve of 0 or more that is smaller than the budget"
            )

    @property
    def recipe(self) -> str:
        """All options but the context levels, as JSON: what makes a level again as it was."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "context_levels"}, sort_keys=True)

    @classmethod
    def of_recipe(cls, recipe: str, context_levels: Iterable[str]) -> BlueprintOptions:
        return cls(context_levels=tuple(context_levels), **json.loads(recipe))


def context_order(level: str) -> tuple[float, str]:
    """Sort key of context levels: 0, 5, 10, all."""
    return (float("inf") if level == "all" else float(level), level)
