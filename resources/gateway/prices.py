"""Prices of models, from the models file or litellm's list, and the usage and cost of calls as servers report them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Request
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


COST_HEADER = "x-litellm-response-cost"
"""Header in which a LiteLLM proxy reports the cost of a call."""
_TOKENS_AS_TEXT = re.compile(r"[0-9]{1,15}")
_NO_USAGE: Mapping[str, Any] = {}


class Bill(NamedTuple):
    """The usage and cost of a call; None if not reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    """US dollars as reported by the provider, or else computed from price and tokens."""
    reported_cost_usd: float | None = None
    cached_tokens: int | None = None
    """Number of `prompt_tokens` that were read from the provider's cache."""
    reasoning_tokens: int | None = None

    @property
    def unless_empty(self) -> Bill | None:
        """The bill, or None if empty."""
        return None if self == NO_BILL else self


NO_BILL = Bill()


def parse_bill(usage: object, rate: Price | None, header: object = None) -> Bill:
    """Return the bill of a reply.

    Args:
        usage: the `usage` of the reply, if any.
        rate: the model's price, used if the provider states no cost; None if unknown.
        header: the value of COST_HEADER, if any; `usage.cost` takes precedence.

    A cost reported by the provider takes precedence over prices, except 0 if the price is above 0: it is from a proxy without prices.
    """
    fields: Mapping[str, Any] = usage if isinstance(usage, Mapping) else _NO_USAGE
    prompt, completion = count_of(fields.get("prompt_tokens")), count_of(fields.get("completion_tokens"))
    cached, reasoning = _parse_cached_tokens(fields, prompt), _parse_reasoning_tokens(fields)
    reported_cost = _parse_reported_cost(fields)
    reported_cost = parse_dollars(header) if reported_cost is None else reported_cost
    cost = None
    if rate is not None and prompt is not None and completion is not None:
        cost = rate.compute_cost(prompt, _count_charged_tokens(fields, prompt, completion, reasoning), cached or 0)
    if reported_cost is not None and (reported_cost > 0 or not cost):
        cost = reported_cost
    return Bill(prompt, completion, cost, reported_cost, cached, reasoning)


def read_bill(request: Request, usage: object, header: object = None) -> Bill:
    """Return the bill of a call, by the model's price if the provider states no cost. A batch of texts has no completion tokens."""
    rate = price(request.model)
    if request.role != EMBEDDER:
        return parse_bill(usage, rate, header)
    bill = parse_bill({**(usage if isinstance(usage, Mapping) else {}), "completion_tokens": 0}, rate, header)
    return bill if bill.prompt_tokens is not None else bill._replace(completion_tokens=None)


def find_usage(content: bytes) -> object:
    """Return the `usage` in any body sent by a server, beside or inside its error, or None."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    return answer.get("usage") or _get_part(answer, "error").get("usage")


def count_of(value: object) -> int | None:
    """Return a number of tokens, which some servers send as text, or None if invalid."""
    if isinstance(value, str) and _TOKENS_AS_TEXT.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0 or value % 1:
        return None
    return int(value)


def parse_dollars(value: object) -> float | None:
    """Return an amount of at least 0, or None if invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = float(value)
    except ValueError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def _parse_reported_cost(usage: Mapping[str, Any]) -> float | None:
    """Return the stated cost: a number (OpenRouter), or parts with their sum (Perplexity)."""
    value = usage.get("cost")
    cost = parse_dollars(value.get("total_cost") if isinstance(value, Mapping) else value)
    # If the user brings a provider key, OpenRouter's `cost` is its fee, and the provider's charge is in another field.
    upstream = (
        parse_dollars(_get_part(usage, "cost_details").get("upstream_inference_cost")) if usage.get("is_byok") is True else None
    )
    return cost if upstream is None else (cost or 0.0) + upstream


def _parse_cached_tokens(usage: Mapping[str, Any], prompt: int | None) -> int | None:
    """Return cached prompt tokens, as named by OpenAI, DeepSeek, Moonshot and Anthropic."""
    named = (
        _get_part(usage, "prompt_tokens_details").get("cached_tokens"),
        *(usage.get(name) for name in ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")),
    )
    cached = next((count for value in named if (count := count_of(value)) is not None), None)
    return cached if cached is None or prompt is None else min(cached, prompt)


def _parse_reasoning_tokens(usage: Mapping[str, Any]) -> int | None:
    count = count_of(_get_part(usage, "completion_tokens_details").get("reasoning_tokens"))
    return count_of(usage.get("reasoning_tokens")) if count is None else count


def _count_charged_tokens(usage: Mapping[str, Any], prompt: int, completion: int, reasoning: int | None) -> int:
    """Return the charged completion tokens. Some servers (xAI's) count reasoning separately, as the total shows."""
    thought = reasoning or 0
    return completion + thought if count_of(usage.get("total_tokens")) == prompt + completion + thought else completion


def _get_part(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = usage.get(name)
    return part if isinstance(part, Mapping) else _NO_USAGE
