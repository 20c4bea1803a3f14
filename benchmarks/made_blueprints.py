"""Blueprints of uneven size, as many as are wanted, for measurements: a large one has 40 % of the prompts of its ten."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

PROMPTS_OF_TEN = (2, 4, 6, 8, 10, 12, 14, 16, 24, 64)
"""Prompts of ten blueprints, 160 together."""
RESPONDENTS, AT_TEMPERATURES, FULL_PROMPTS = 25, (0.0, 0.7), 1_600


def documents(share: Fraction) -> Iterator[tuple[str, list[Any]]]:
    """(name, documents) of the blueprints that have so large a share of all prompts."""
    left = max(round(FULL_PROMPTS * share), 1)
    for number, size in enumerate(itertools.cycle(PROMPTS_OF_TEN)):
        size = min(size, left)
        left -= size
        header = {
            "title": f"Blueprint {number}",
            "models": [f"openai:model-{at}" for at in range(RESPONDENTS)],
            "temperatures": list(AT_TEMPERATURES),
        }
        yield f"blueprint-{number:03d}", [header, [_prompt(number, at) for at in range(size)]]
        if not left:
            return


def _prompt(number: int, at: int) -> dict[str, Any]:
    matters = 4 if at % 8 < 3 else 3
    return {
        "id": f"prompt-{at:03d}",
        "prompt": f"What does law {number}.{at} say about tenants, and what is disputed?",
        "should": [
            *(
                f"It says what law {number}.{at} wants done about matter {matter}, and who does it."
                for matter in range(matters)
            ),
            {"$contains": "deposit"},
        ],
        **({"ideal": f"Law {number}.{at} lets tenants keep a part of the deposit."} if at % 3 == 0 else {}),
    }
