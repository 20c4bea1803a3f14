"""Personas in leagues: those that people approved play, drafts and retired ones only where somebody says so, and boards say so of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import NO_PERSONA, Player

APPROVED = "approved"
PERSONA_STATUS = "persona_status"
"""The column of boards: what people say of the persona today. Empty: the player has none, or no file has it any more."""


def require_approved(players: Iterable[Player], otherwise: str = "") -> None:
    """Raises ConfigError for personas that are drafts or retired, with their status. `otherwise`: what else is allowed than another persona."""
    found = {one.persona.name: one.persona.status for one in players if one.persona is not None}
    if told := [f"{name} ({status})" for name, status in sorted(found.items()) if status != APPROVED]:
        raise ConfigError(f"persona {', '.join(told)}: not approved; allowed: an approved persona{otherwise}")


def persona_statuses(names: Iterable[str], known: Mapping[str, Persona]) -> list[str]:
    """The status of each persona of a table, `cautious:v2`: draft, approved or retired; "" for none, and for one that is not in `known`."""
    return [str(known[name].status) if name != NO_PERSONA and name in known else "" for name in names]


def unapproved_mark(status: object) -> str:
    """What stands beside a player whose persona nobody approved: `draft persona`; "" for all others."""
    return f"{status} persona" if isinstance(status, str) and status not in ("", APPROVED) else ""
