"""Variants of models, parsed from their text form."""

from __future__ import annotations

from dtef_pipeline.asking.models import LOCAL_MODELS, ModelSpec


def parse_variant(name: str, variant: str) -> ModelSpec | None:
    """Return the model that a variant names, as far as its responses depend on it, or None if it is not a variant."""
    model, _, settings = variant.removesuffix("]").partition("[")
    parameters = {part.partition("=")[0]: part.partition("=")[2] for part in settings.split(",") if part}
    local = model in LOCAL_MODELS
    values = {"name": name, "model": model, "temperature": None, **({} if local else {"max_tokens": None}), **parameters}
    try:
        spec = ModelSpec.model_validate(values)
    except ValueError:
        return None
    return spec if spec.variant == variant else None
