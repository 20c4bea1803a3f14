"""Budgets in command options: of the run, of roles, of models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from dtef_pipeline.asking.models import Models, resolve_known_selector
from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import FamilySettings, build_settings
from dtef_pipeline.text.name_matching import list_nearest


def parse_budgets(costs: Sequence[str], calls: Sequence[str], tokens: Sequence[str] = ()) -> dict[str, Any]:
    """Return the budgets of the run, of roles and of models for the configuration. Raises ConfigError for an invalid or repeated budget."""
    budgets: dict[str, Any] = {"budgets": {}, "role_budgets": {}}
    for name, texts in (("max_cost_usd", costs), ("max_calls", calls), ("max_tokens", tokens)):
        for text in texts:
            owner, _, value = text.rpartition("=")
            bounds = budgets[f"{'role_' if owner in ROLES else ''}budgets"].setdefault(owner, {}) if owner else budgets
            if name in bounds:
                raise ConfigError(f"--{name.replace('_', '-')} is given twice for {owner or 'the run'}; give it once")
            bounds[name] = _parse_amount(name, text, value)
    return budgets


def _parse_amount(name: str, text: str, value: str) -> float:
    try:
        amount = float(value.replace("_", ""))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf") or (name != "max_cost_usd" and amount != int(amount)):
        roles = ", ".join(ROLES)
        hint = "a number of 0 or more" if name == "max_cost_usd" else "a whole number of 0 or more"
        raise ConfigError(
            f"--{name.replace('_', '-')} {text!r}: {value!r} is not {hint}; a model or role may stand before it, as in "
            f"MODEL=5 (roles: {roles})"
        )
    return amount if name == "max_cost_usd" else int(amount)


def apply_budgets(settings: FamilySettings, flags: RunFlags, names: Collection[str], models: Models) -> FamilySettings:
    """Return the settings with a command's budgets: of the run, of roles, and of models by name.

    Other limits of the models file are kept. `names`: see `resolve_budget_owners`. Raises ConfigError as it does, and for invalid amounts.
    """
    budgets = (resolve_budget_owners(texts, names, models) for texts in (flags.max_cost_usd, flags.max_calls, flags.max_tokens))
    config = parse_budgets(*budgets)
    for name, bounds in config["budgets"].items():
        (spec,) = models.resolve([name])
        config["budgets"][name] = {**spec.budget.model_dump(exclude_none=True), **bounds}
    return build_settings(type(settings), settings.model_dump(exclude_unset=True) | config)


def resolve_budget_owners(texts: Sequence[str], names: Collection[str], models: Models) -> tuple[str, ...]:
    """Return the budgets, with models given by model string under their names in the run.

    `names`: the models of the run. Raises ConfigError if an owner is neither a role nor one of them, as the budget would limit nothing.
    """
    return tuple(_resolve_owner(text, names, models) for text in texts)


def _resolve_owner(text: str, names: Collection[str], models: Models) -> str:
    owner, _, value = text.rpartition("=")
    if not owner or owner in ROLES or owner in names:
        return text
    if (name := name_of_asked(owner, names, models)) is None:
        raise ConfigError(
            f"the budget of {owner!r} limits nothing in this run; roles and models: {list_nearest(owner, {*ROLES, *names})}"
        )
    return f"{name}={value}"


def name_of_asked(text: str, names: Collection[str], models: Models) -> str | None:
    """Return the run's model that the text names in any spelling, or None if there is none. `names`: see `resolve_budget_owners`."""
    if text in names:
        return text
    with suppress(ConfigError):
        specs = models.resolve([resolve_known_selector(text, models)])
        if len(specs) == 1 and specs[0].name in names:
            return specs[0].name
    return None
