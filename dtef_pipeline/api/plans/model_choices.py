"""The models that a page offers to play or to answer, and whether each can be asked on this server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from resources.model_catalog import load_known_models
from resources.settings import Settings

USUAL_CALLS = 2000
"""Of an evaluation, where nobody says how many."""


class ModelChoice(NamedTuple):
    """A model of the models files that writes texts."""

    spec: ModelSpec
    lacks: str | None
    """What is missing before it can be asked, in words; None: nothing, as far as a quick look tells."""

    @property
    def mark(self) -> str:
        """The same in two words; empty where nothing is missing."""
        return "" if self.lacks is None else "not installed" if self.spec.is_local else "no key"


def list_model_choices(settings: Settings) -> list[ModelChoice]:
    """All models of the files, in their order, but those that are computed and those that embed. Raises ConfigError where a file has a fault."""
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
    """The first that can be asked, one of a server before one in this process; None: there is none."""
    askable = [choice.spec for choice in choices if choice.lacks is None and not choice.spec.is_imported]
    return next((spec for spec in askable if not spec.is_local), next(iter(askable), None))


def compute_default_budget(specs: Iterable[ModelSpec]) -> dict[str, int]:
    """What asking these models may use where nobody says: dollars, or calls where no bound in dollars can be kept."""
    # A model at an address of its own has no price but that of the models file.
    is_priced = all(not spec.api_base or spec.input_price is not None for spec in specs)
    return {"max_cost_usd": 5} if is_priced else {"max_calls": USUAL_CALLS}


def _is_embedder(spec: ModelSpec) -> bool:
    """By its name, as the models files do not say it and the list of litellm takes seconds to load."""
    return spec.model == LOCAL_EMBEDDER or "embed" in f"{spec.name} {spec.model}".lower()
