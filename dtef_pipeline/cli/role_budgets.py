"""Budgets of `run`, `judge`, `estimate` and `anchors` of `dtef rubric` and `dtef qa`, as they are given: of the run, of roles, of models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from dtef_pipeline.asking.models import Models
from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import FamilySettings, settings_of
from dtef_pipeline.rubric.candidates import known_selector
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


def with_budgets(
    settings: FamilySettings, costs: Sequence[str], calls: Sequence[str], asked: Collection[str], models: Models
) -> FamilySettings:
    """The settings with budgets as a command gives them, [ROLE=|MODEL=]AMOUNT each: of the run, of roles, and of models by name.

    `asked`: names of the models of the run, under which budgets are found that were given by a model string. Raises ConfigError for what is no
    amount, and for a budget of what is neither a role nor one of these models: it would bound nothing.
    """
    owned = (owned_budgets(given, asked, models) for given in (costs, calls))
    return settings_of(type(settings), settings.model_dump(exclude_unset=True) | budgets_given(*owned))


def owned_budgets(given: Sequence[str], asked: Collection[str], models: Models) -> tuple[str, ...]:
    """Each of the budgets as `with_budgets` takes it, with the name of its model."""
    return tuple(_owned(text, asked, models) for text in given)


def _owned(text: str, asked: Collection[str], models: Models) -> str:
    owner, _, value = text.rpartition("=")
    if not owner or owner in ROLES or owner in asked:
        return text
    with suppress(ConfigError):
        found = models.resolve([known_selector(owner, models)])
        if len(found) == 1 and found[0].name in asked:
            return f"{found[0].name}={value}"
    raise ConfigError(f"budget of {owner!r}: allowed: a role or a model of this run: {nearest(owner, {*ROLES, *asked})}")
