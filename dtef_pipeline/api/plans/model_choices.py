"""The models that a page offers, and whether each can be used on this server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from resources.model_catalog import load_known_models
from resources.settings import Settings

USUAL_CALLS = 2000
"""Default budget of an evaluation."""


class ModelChoice(NamedTuple):
    """A text-generating model of the models files."""

    spec: ModelSpec
    lacks: str | None
    """What is missing before it can be used, in words; None: nothing, as far as a quick check shows."""

    @property
    def mark(self) -> str:
        """The missing requirement in two words; empty: none."""
        return "" if self.lacks is None else "not installed" if self.spec.is_local else "no key"


def list_model_choices(settings: Settings) -> list[ModelChoice]:
    """List all models of the files, in their order, except computed models and embedders. Raises ConfigError if a file is invalid."""
    # These bring pandas and the response store, which the API starts without.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.gateway.model_checks import find_quick_problem

    specs = load_known_models(settings, COMPUTED_MODELS).specs.values()
    return [
        ModelChoice(spec, find_quick_problem(spec, os.environ))
        for spec in specs
        if not (spec.is_computed or _is_embedder(spec))
    ]


def choose_askable(choices: Iterable[ModelChoice]) -> ModelSpec | None:
    """Return the first usable model, preferring one with a server over one in this process; None: there is none."""
    askable = [choice.spec for choice in choices if choice.lacks is None]
    return next((spec for spec in askable if not spec.is_local), next(iter(askable), None))


def compute_default_budget(specs: Iterable[ModelSpec]) -> dict[str, int]:
    """Return the default budget for these models: dollars, or calls if a limit in dollars cannot be enforced."""
    # A model at an address of its own has no price but that of the models file.
    is_priced = all(not spec.api_base or spec.input_price is not None for spec in specs)
    return {"max_cost_usd": 5} if is_priced else {"max_calls": USUAL_CALLS}


def _is_embedder(spec: ModelSpec) -> bool:
    """Whether the model's name is that of an embedder; the models files do not say, and LiteLLM's list takes seconds to load."""
    return spec.model == LOCAL_EMBEDDER or "embed" in f"{spec.name} {spec.model}".lower()
