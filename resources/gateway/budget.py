"""Budgets of a run and its models: before a call, its maximum usage is reserved; afterwards, its actual usage counts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple

from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER, Request
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import UnpricedModels
from dtef_pipeline.text.amounts import describe_unknown_cost
from resources.gateway.prices import Bill, Price, is_cost_stated

# Tokenizers differ, so the reserved tokens include a margin on the estimated prompt and some for each message's markup.
_PROMPT_MARGIN = 1.3
_FRAME_TOKENS = 10
_ROUNDING_USD = 1e-12
WITHOUT_BILL = (
    "its price is not known, and a call that may be billed stated no cost, so a limit in dollars cannot be enforced; "
    "give input_price and output_price in the models file, or limit with max_calls or max_tokens"
)
UNBOUNDED_RESPONSE = 4096
"""Tokens reserved for a response without `max_tokens`."""


class Usage(NamedTuple):
    """Actual or maximum usage of calls."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Calls of unknown cost that may have been billed; if the price is known, `cost_usd` includes the most that they may have cost."""
    most_usd: float = 0.0
    """The part of `cost_usd` for calls of unknown cost: the most that they may have cost."""

    @property
    def known_usd(self) -> float | None:
        """US dollars of calls of known cost, or None if there are only others."""
        known_cost = self.cost_usd - self.most_usd
        return None if self.unpriced and known_cost <= _ROUNDING_USD else max(known_cost, 0.0)

    def __add__(self, other: Usage) -> Usage:  # type: ignore[override]
        return Usage(*map(operator.add, self, other))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(operator.sub, self, other))


class Account:
    """One owner's limits and usage."""

    def __init__(self, owner: str, limits: Budget) -> None:
        self.owner, self.limits = owner, limits
        self.spent = Usage()
        self.reached: str | None = None
        """The limit that was reached: "the run's max_calls of 100"; None: none yet."""
        self.daily: DailyBudget | None = None
        """A daily limit over all runs that share the store."""
        self._reserved = Usage()

    @property
    def reached_limit_text(self) -> str:
        """The limit reached and, unless it is one of calls, the usage it counts for calls of unknown cost."""
        unknown = describe_unknown_cost(self.spent.unpriced, self.spent.most_usd)
        counts_unknown = self.spent.most_usd and " max_calls " not in str(self.reached)
        return f"{self.reached} was reached" + (f", which counts {unknown}" if counts_unknown else "")

    def find_broken_limit(self, usage: Usage) -> str | None:
        """Return the limit that this usage would break, or None."""
        total = self.spent + self._reserved + usage
        limits = self.limits
        for name, limit, would_be in (
            ("max_calls", limits.max_calls, total.calls),
            ("max_tokens", limits.max_tokens, total.tokens),
            ("max_cost_usd", limits.max_cost_usd, total.cost_usd),
        ):
            if limit is not None and would_be > limit:
                return f"{self.owner} {name} of {limit:,}"
        if self.daily is not None and not self.daily.fits(usage.cost_usd):
            dollars = f"{self.daily.limit:,.2f}" if self.daily.limit >= 0.01 else f"{self.daily.limit:g}"
            return f"{self.owner} daily budget of ${dollars} for {datetime.now(UTC):%Y-%m-%d} (UTC)"
        return None

    def reserve(self, usage: Usage) -> None:
        self._reserved += usage
        if self.daily is not None:
            self.daily.take(usage.cost_usd)

    def settle(self, reservation: Usage, actual: Usage) -> None:
        remaining = self._reserved - reservation
        # Without calls in flight nothing is reserved; this removes rounding errors.
        self._reserved = remaining if remaining.calls else Usage()
        self.spent += actual
        if self.daily is not None:
            self.daily.settle(reservation.cost_usd, actual.cost_usd)

    def refuse(self, limit: str) -> None:
        """Mark the limit as reached, unless calls in flight may use less than they reserved."""
        if not self._reserved.calls:
            self.reached = limit


class Accounts:
    """The accounts of a run, of its models (by name) and of roles, with their limits."""

    def __init__(self, budget: Budget, budgets: Mapping[str, Budget]) -> None:
        self.run, self.models = Account("the run's", Budget()), dict[str, Account]()
        self.roles: dict[str, Account] = {}
        self.by_role: dict[str, Usage] = {}
        """Usage of all models by role."""
        self.allowed_unpriced: set[str] = set()
        """Names of models that may be called under a limit in dollars although their price is unknown; they count as free."""
        self._counts_tokens = False
        self.limit(budget, budgets)

    def limit(self, budget: Budget, budgets: Mapping[str, Budget], role_budgets: Mapping[str, Budget] | None = None) -> None:
        """Add limits, such as those of a later stage: each applies where there is none yet, also to earlier usage.

        `budgets`: by model name; `role_budgets`: by role, over all models.
        """
        self.run.limits = _merge_limits(self.run.limits, budget)
        for name, limits in budgets.items():
            account = self._get_account(name)
            account.limits = _merge_limits(account.limits, limits)
        for role, limits in (role_budgets or {}).items():
            account = self._get_role_account(role)
            account.limits = _merge_limits(account.limits, limits)
        all_limits = [account.limits for account in (self.run, *self.models.values(), *self.roles.values())]
        has_daily = any(account.daily is not None for account in self.roles.values())
        self._counts_tokens = has_daily or any(cap.max_tokens is not None or cap.max_cost_usd is not None for cap in all_limits)

    def limit_daily(self, role: str, budget: DailyBudget) -> None:
        """Limit the daily cost of a role, over all models and runs; call before the first request in this role."""
        self._get_role_account(role).daily = budget
        self._counts_tokens = True

    def is_price_needed(self, model: str, role: str = CANDIDATE) -> bool:
        """Return whether a limit in dollars applies to this model in this role."""
        accounts = self._list_accounts(model, role)
        return any(account.limits.max_cost_usd is not None or account.daily is not None for account in accounts)

    def is_price_missing(self, spec: ModelSpec, price: Price | None, role: str = CANDIDATE) -> bool:
        """Return whether a limit in dollars needs an unknown price, unless `allowed_unpriced` has the model."""
        return price is None and self.is_price_needed(spec.name, role) and spec.name not in self.allowed_unpriced

    def refuse_unpriced(self, prices: Iterable[tuple[ModelSpec, Price | None]], role: str = CANDIDATE) -> None:
        """Raise UnpricedModels for models to which a limit in dollars applies, without a known price and a provider that states costs."""
        missing_prices = (spec for spec, price in prices if self.is_price_missing(spec, price, role))
        # Some providers state the cost of each call.
        if unknown := [spec.name for spec in missing_prices if not is_cost_stated(spec)]:
            by_day = all(account.limits.max_cost_usd is None for name in unknown for account in self._list_accounts(name, role))
            limit = "the daily budget" if by_day else "max_cost_usd"
            raise UnpricedModels(
                f"no request was sent, because {limit} cannot be enforced without a price of {', '.join(unknown)}; "
                "give input_price and output_price in the models file, or limit with max_calls or max_tokens",
                unknown,
            )

    def estimate(self, request: Request, price: Price | None, ceiling: Ceiling | None = None) -> Usage:
        """Return the usage to reserve for one call (`compute_max_usage`), without tokens and dollars if no limit counts them."""
        return compute_max_usage(request, price, ceiling) if self._counts_tokens else Usage(calls=1)

    def reserve(self, model: str, usage: Usage, role: str = CANDIDATE) -> bool:
        """Reserve usage for a call. Return False if a limit forbids it now or (`reached`) for the whole run."""
        accounts = self._list_accounts(model, role)
        broken = [(account, limit) for account in accounts if (limit := account.find_broken_limit(usage))]
        for account, limit in broken:
            account.refuse(limit)
        if not broken:
            for account in accounts:
                account.reserve(usage)
        return not broken

    def settle(self, model: str, reservation: Usage, actual: Usage, role: str = CANDIDATE) -> None:
        """Replace the reservation of an ended call by its usage."""
        self.by_role[role] = self.by_role.get(role, Usage()) + actual
        for account in self._list_accounts(model, role):
            account.settle(reservation, actual)

    def find_reached_limit(self, model: str, role: str = CANDIDATE) -> str | None:
        """Return why this model gets no more requests in this role (`the run's max_cost_usd of 5 was reached`), or None."""
        return next((account.reached_limit_text for account in self._list_accounts(model, role) if account.reached), None)

    def _list_accounts(self, model: str, role: str) -> tuple[Account, ...]:
        accounts = (self.run, self._get_account(model))
        return (*accounts, self.roles[role]) if role in self.roles else accounts

    def _get_account(self, model: str) -> Account:
        """Return the account of a model, created at its first call: a later stage may limit it."""
        return self.models.setdefault(model, Account(f"{model}'s", Budget()))

    def _get_role_account(self, role: str) -> Account:
        return self.roles.setdefault(role, Account(f"the {role}s'", Budget()))


@dataclass
class Ceiling:
    """The maximum usage of calls of one model in one role: estimates, raised by what replies have reported.

    An estimate is too low if a tokenizer splits more finely than most, or a server adds text. So estimated tokens are multiplied by the
    largest ratio of reported to estimated tokens, and the largest amount by which a bill exceeded even that is added to each call's cost.
    """

    prompt_ratio: float = 1.0
    response_ratio: float = 1.0
    extra_usd: float = 0.0
    is_stated: bool = False
    """Whether a reply reported the tokens of its prompt."""
    _silent: int = 0
    _unknown: tuple[int, int, int] = (0, 0, 0)
    """Number of calls of unknown cost, and the estimated tokens of their prompts and responses."""
    _counted: Usage = field(default_factory=Usage)
    """The usage counted for those calls so far."""

    def may_begin(self, in_flight: int) -> bool:
        """Return whether another call may start. Until a reply reports its prompt tokens, only one may be in flight, plus one for each call
        that ended without a report.
        """
        return self.is_stated or in_flight <= self._silent

    def learn(self, bill: Bill | None, request: Request, price: Price | None) -> None:
        """Learn from an ended call, with its bill if any."""
        if bill is None or bill.prompt_tokens is None:
            self._silent += 1
        if bill is None:
            return
        prompt, response = _estimate_tokens(request)
        if bill.prompt_tokens is not None:
            self.is_stated = True
            self.prompt_ratio = max(self.prompt_ratio, bill.prompt_tokens / prompt)
        if response and bill.completion_tokens is not None:
            self.response_ratio = max(self.response_ratio, bill.completion_tokens / response)
        if bill.cost_usd is not None and price is not None:
            self.extra_usd += max(0.0, bill.cost_usd - self.estimate_maximum(1, prompt, response, price).cost_usd)

    def estimate_maximum(self, calls: int, prompt: int, response: int, price: Price | None) -> Usage:
        """Return the maximum usage of calls with these estimated total tokens."""
        prompt, response = ceil(self.prompt_ratio * prompt), ceil(self.response_ratio * response)
        return Usage(calls, prompt + response, price.compute_cost(prompt, response) + calls * self.extra_usd if price else 0.0)

    def count_unknown(self, request: Request, usage: Usage) -> None:
        """Record usage counted for a call of unknown cost."""
        prompt, response = _estimate_tokens(request)
        calls, prompts, responses = self._unknown
        self._unknown = calls + 1, prompts + prompt, responses + response
        self._counted += usage

    def take_uncounted(self, price: Price | None) -> Usage:
        """Return the usage that calls of unknown cost may have beyond their counted usage, given later replies, and count it."""
        extra = self.estimate_maximum(*self._unknown, price) - self._counted
        cost = max(0.0, extra.cost_usd)
        usage = Usage(tokens=max(0, extra.tokens), cost_usd=cost, most_usd=cost)
        self._counted += usage
        return usage


def _estimate_tokens(request: Request) -> tuple[int, int]:
    """Return the tokens of the prompt, estimated on the high side, and the response's maximum."""
    texts = [message.text for message in request.conversation]
    # A request without a system message is counted with the markup of two messages as well.
    prompt = int(_PROMPT_MARGIN * sum(map(estimate_tokens, texts))) + _FRAME_TOKENS * max(2, len(texts))
    response = request.max_tokens or max(UNBOUNDED_RESPONSE, request.answer_tokens or 0)
    return prompt, 0 if request.role == EMBEDDER else response


def compute_max_usage(request: Request, price: Price | None, ceiling: Ceiling | None = None) -> Usage:
    """Return the maximum usage of one call."""
    return (ceiling or Ceiling()).estimate_maximum(1, *_estimate_tokens(request), price)


def count_unknown_cost(request: Request, price: Price | None, ceiling: Ceiling | None = None) -> Usage:
    """Return the usage to count for a call that may have been billed at an unknown cost: its maximum."""
    maximum = compute_max_usage(request, price, ceiling)
    is_free = price is not None and not maximum.cost_usd
    return maximum if is_free else maximum._replace(unpriced=1, most_usd=maximum.cost_usd)


def _merge_limits(limits: Budget, defaults: Budget) -> Budget:
    """Return the limits, completed by the further ones."""
    return Budget(**{**defaults.model_dump(), **limits.model_dump(exclude_none=True)})
