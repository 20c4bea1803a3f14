"""Personas: roles that models are instructed to play. A persona has versions; a player is one version, played by one model variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import select_versions_in_play

PersonaId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,60}$")]
_TraitName = Annotated[str, StringConstraints(max_length=100)]
_TraitText = Annotated[str, StringConstraints(max_length=1_000)]
_MOST_TRAITS = 50
PersonaStatus = Literal["draft", "approved", "retired"]
"""From the first to the last."""


class Persona(Part):
    """One version of a persona."""

    id: PersonaId
    version: Annotated[int, Field(ge=1)]
    status: PersonaStatus = "draft"
    display_name: Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
    """What people call it; hidden from reviewers."""
    system_prompt: Annotated[str, StringConstraints(min_length=1, max_length=32_000, strip_whitespace=True)]
    """Text that precedes a scenario's rules in the system message."""
    traits: Annotated[dict[_TraitName, _TraitText | int | float | bool], Field(max_length=_MOST_TRAITS)] = {}
    """What it is said to be, for people and boards: `risk: low`."""

    @field_validator("traits", mode="before")
    @classmethod
    def _check_number(cls, traits: object) -> object:
        """Before each trait is read: 60,000 that are faulty took half a minute."""
        if isinstance(traits, dict) and len(traits) > _MOST_TRAITS:
            raise ValueError(f"got {len(traits):,}; allowed: at most {_MOST_TRAITS}")
        return traits

    @property
    def name(self) -> str:
        """Id and version, as tables have it: `cautious:v2`."""
        return f"{self.id}:v{self.version}"


def read_persona_versions(folder: Path) -> dict[str, Persona]:
    """All versions of all personas of a folder, `*.yaml`, by name (`cautious:v2`); none where there is no folder.

    Raises ConfigError for faults, with file and line, and for a version that occurs twice.
    """
    personas: dict[str, Persona] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = read_document(path, "persona", tuple(Persona.model_fields))
        persona = document.validate_as(Persona)
        if persona.name in personas:
            raise document.error(
                ("id",),
                f"got {persona.id}, of which another file of {folder} has version {persona.version}; allowed: another version",
            )
        personas[persona.name] = persona
    return personas


def select_latest_personas(versions: Iterable[Persona]) -> dict[str, Persona]:
    """The version of each persona that is in play, by id, in the order of ids: the latest that is no draft; of drafts alone, the latest.

    So a persona that was approved plays on while its next version is a draft, and one whose latest version was retired plays no more.
    """
    return select_versions_in_play(versions, "draft")


BASELINE_PREFIX = "baseline/"
NO_PERSONA = ""
"""What tables have as the persona of a model that plays as itself, and of a baseline."""


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits at a seat: a model, perhaps as a persona, or a baseline. Raises ConfigError when it is both or neither."""

    model: ModelSpec | None = None
    persona: Persona | None = None
    baseline: str | None = None
    """Its name without `baseline/`."""

    def __post_init__(self) -> None:
        if (self.model is None) == (self.baseline is None) or (self.persona and self.baseline):
            raise ConfigError("a player is a model, with or without a persona, or else a baseline")

    @property
    def model_name(self) -> str:
        """As tables have it in `model`: the model's name, or `baseline/random`."""
        return self.model.name if self.model else f"{BASELINE_PREFIX}{self.baseline}"

    @property
    def variant(self) -> str:
        """As tables have it in `model_variant`; of a baseline its name."""
        return self.model.variant if self.model else self.model_name

    @property
    def persona_name(self) -> str:
        """As tables have it in `persona`: id and version, or nothing."""
        return self.persona.name if self.persona else NO_PERSONA

    @property
    def name(self) -> str:
        """What people call it, and what opponents are called in tables: `cautious:v2@gpt-4.1-mini`, `gpt-4.1-mini`, `baseline/random`."""
        return f"{self.persona_name}@{self.model_name}" if self.persona else self.model_name


APPROVED = "approved"
PERSONA_STATUS = "persona_status"
"""The column of boards: what people say of the persona today. Empty: the player has none, or no file has it any more."""


def require_approved(players: Iterable[Player], otherwise: str = "") -> None:
    """Raises ConfigError for personas that are drafts or retired, with their status. `otherwise`: what else is allowed than another persona."""
    statuses = {player.persona.name: player.persona.status for player in players if player.persona is not None}
    if names := [f"{name} ({status})" for name, status in sorted(statuses.items()) if status != APPROVED]:
        raise ConfigError(f"persona {', '.join(names)}: not approved; allowed: an approved persona{otherwise}")


def list_persona_statuses(names: Iterable[str], personas: Mapping[str, Persona]) -> list[str]:
    """The status of each persona of a table, `cautious:v2`: draft, approved or retired; "" for none, and for one that is not in `personas`."""
    return [str(personas[name].status) if name != NO_PERSONA and name in personas else "" for name in names]


def mark_unapproved(status: object) -> str:
    """What stands beside a player whose persona nobody approved: `draft persona`; "" for all others."""
    return f"{status} persona" if isinstance(status, str) and status not in ("", APPROVED) else ""
