"""What a model charges: the prices of the models file, else those of litellm's list."""

from __future__ import annotations

from dataclasses import dataclass

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.litellm_module import load_litellm


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


FREE = Price(0.0, 0.0)


def price(spec: ModelSpec) -> Price | None:
    """The model's price; None: unknown. What is computed on this machine, or was made elsewhere, costs nothing.

    A server of one's own (`api_base`) has no price unless the models file gives one, whatever its model is called elsewhere.
    Discounts (cached prompts, batches) and dearer tiers of very long prompts are not in it.
    """
    if own := own_price(spec):
        return own
    if spec.is_local or spec.is_computed or spec.is_imported:
        return FREE
    return None if spec.api_base else _listed(spec.model)


def own_price(spec: ModelSpec) -> Price | None:
    """The price that the models file gives."""
    if spec.input_price is None or spec.output_price is None:
        return None
    return Price(spec.input_price, spec.output_price)


def cost_of_embedding(spec: ModelSpec, tokens: int | None) -> float | None:
    """US dollars for so many tokens of texts; None: the tokens or the price are not known."""
    if tokens is None or (charged := price(spec)) is None:
        return None
    return charged.of(tokens, 0)


def _listed(model: str) -> Price | None:
    try:
        litellm = load_litellm()
        info = litellm.get_model_info(model)
    except Exception:  # litellm raises a bare Exception for a model it has no entry of
        return None
    prompt, completion = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if not prompt and not completion and info.get("key") not in litellm.model_cost:
        return None  # of a model of OpenRouter that its list does not have, litellm may say that it is free
    return None if prompt is None or completion is None else Price(prompt * 1e6, completion * 1e6)
