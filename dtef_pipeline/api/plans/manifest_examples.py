"""An example manifest for each family, with a model that this server can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.api.plans.model_choices import USUAL_CALLS, choose_askable, compute_default_budget, list_model_choices
from resources.settings import Settings


def manifest_examples(settings: Settings) -> Mapping[str, Mapping[str, Any]]:
    """Return example manifests by family. Their other names are shipped or added by the demo. Without a usable model: baselines, and stored
    responses.

    Raises ConfigError if a models file is invalid.
    """
    model = choose_askable(list_model_choices(settings))
    models = [model.name] if model else []
    budget = compute_default_budget([model] if model else [])
    replay = {"models": ["stored/amber", "stored/birch"], "budget": {"max_calls": 0}}
    return {
        "games": {
            "family": "games",
            "persona_ids": ["cautious", "none"] if models else ["none"],
            "scenario_ids": ["poker/kuhn"],
            "models": [*models, "baselines"],
            "seeds": "1-20",
            "budget": {**budget, "max_calls": USUAL_CALLS},
            "snapshot": "base",
        },
        "survey": {
            "family": "survey",
            "rounds": ["S1"],
            "models": models or ["baselines"],
            "context_levels": ["0"],
            "budget": budget,
        },
        "rubric": {
            "family": "rubric",
            "blueprints": ["demo-facts"],
            **({"models": models, "budget": budget} if models else replay),
        },
        "qa": {
            "family": "qa",
            "suites": ["demo-*"],
            "models": models or ["local/smollm2-135m"],
            "judge": "none",
            "budget": budget,
        },
    }
