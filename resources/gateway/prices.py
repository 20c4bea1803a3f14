"""Prices of models from the models file, else from litellm's list."""

from __future__ import annotations

from dataclasses import dataclass

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.litellm_module import load_litellm


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in US dollars per million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Price of a prompt token that is read from the provider's cache; None: unknown, so the price of other prompt tokens applies."""

    def compute_cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return US dollars for these tokens; `cached_tokens` of the prompt were read from a cache, which never costs more."""
        discount = 0.0 if self.cached is None else max(0.0, self.prompt - self.cached)
        return (prompt_tokens * self.prompt - cached_tokens * discount + completion_tokens * self.completion) / 1e6


FREE = Price(0.0, 0.0)
_STATES_COSTS = "openrouter/"


def price(spec: ModelSpec) -> Price | None:
    """Return the model's price, or None if unknown. Local and computed models cost nothing.

    A server at its own address (`api_base`) has no price unless the models file gives one, regardless of its model's name. Batch discounts
    and higher prices of very long prompts are ignored.
    """
    if own_price := build_own_price(spec):
        return own_price
    if spec.is_local or spec.is_computed:
        return FREE
    return None if spec.api_base else _find_listed_price(spec.model)


def is_cost_stated(spec: ModelSpec) -> bool:
    """Return whether the provider states the cost in each reply, so that a limit in dollars needs no price."""
    return spec.model.startswith(_STATES_COSTS) and not spec.api_base


def compute_bound(cost_usd: float, prompt_tokens: int, completion_tokens: int) -> Price:
    """Return the highest prices that a call of this cost allows: no kind of token cost more than the call. Both counts are above 0."""
    return Price(cost_usd * 1e6 / prompt_tokens, cost_usd * 1e6 / completion_tokens)


def build_own_price(spec: ModelSpec) -> Price | None:
    """Return the models file's price, or None."""
    if spec.input_price is None or spec.output_price is None:
        return None
    return Price(spec.input_price, spec.output_price, spec.cached_input_price)


def _find_listed_price(model: str) -> Price | None:
    try:
        litellm = load_litellm()
        info = litellm.get_model_info(model)
    except Exception:  # LiteLLM raises a bare Exception for a model without an entry
        return None
    prompt, completion = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if not prompt and not completion and info.get("key") not in litellm.model_cost:
        return None  # LiteLLM may report a model of OpenRouter that is not in its list as free
    cached = info.get("cache_read_input_token_cost")
    read = None if cached is None else cached * 1e6
    return None if prompt is None or completion is None else Price(prompt * 1e6, completion * 1e6, read)
