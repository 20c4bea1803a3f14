"""Budgets of `dtef rubric run`, `judge`, `estimate` and `anchors`, as they are given: of the run, of roles and of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.nearest import nearest


def budgets_given(costs: Sequence[str], calls: Sequence[str]) -> dict[str, Any]:
    """Budgets as the configuration takes them: of the run, of roles and of models."""
    found: dict[str, Any] = {"budgets": {}, "role_budgets": {}}
    for name, given in (("max_cost_usd", costs), ("max_calls", calls)):
        for text in given:
            owner, _, value = text.rpartition("=")
            amount = _amount(name, text, value)
            if not owner:
                found[name] = amount
            else:
                kind = "role_budgets" if owner in ROLES else "budgets"
                found[kind].setdefault(owner, {})[name] = amount
    return found


def _amount(name: str, text: str, value: str) -> float:
    try:
        amount = float(value.replace("_", ""))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf") or (name == "max_calls" and amount != int(amount)):
        roles = ", ".join(ROLES)
        what = "an amount from 0" if name == "max_cost_usd" else "a whole number from 0"
        raise ConfigError(
            f"--{name.replace('_', '-')} {text!r}: allowed: {what}, alone or after MODEL= or ROLE= (roles: {roles})"
        )
    return int(amount) if name == "max_calls" else amount


def require_owners(given: Mapping[str, Any], asked: Iterable[str]) -> None:
    """Raises ConfigError for a budget of what is neither a role nor a model of the run: it would bound nothing.

    `given`: as `budgets_given` makes it. `asked`: names of the models of the run.
    """
    allowed = {*ROLES, *asked}
    for owner in given["budgets"]:
        if owner not in allowed:
            raise ConfigError(f"budget of {owner!r}: allowed: a role or a model of this run: {nearest(owner, allowed)}")
