"""Personas in leagues: those that people approved play, drafts and retired ones only where somebody says so."""

from __future__ import annotations

from collections.abc import Iterable

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.players import Player

APPROVED = "approved"


def require_approved(players: Iterable[Player], otherwise: str = "") -> None:
    """Raises ConfigError for personas that are drafts or retired, with their status. `otherwise`: what else is allowed than another persona."""
    found = {one.persona.name: one.persona.status for one in players if one.persona is not None}
    if told := [f"{name} ({status})" for name, status in sorted(found.items()) if status != APPROVED]:
        raise ConfigError(f"persona {', '.join(told)}: not approved; allowed: an approved persona{otherwise}")
