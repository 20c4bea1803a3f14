"""Personas: roles that models are instructed to play. A persona has versions; a player is one version played by one model variant."""

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
_MAX_TRAITS = 50
PersonaStatus = Literal["draft", "approved", "retired"]
"""Statuses, from first to last."""


class Persona(Part):
    """One version of a persona."""

    id: PersonaId
    version: Annotated[int, Field(ge=1)]
    status: PersonaStatus = "draft"
    display_name: Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
    """Display name; hidden from reviewers."""
    system_prompt: Annotated[str, StringConstraints(min_length=1, max_length=32_000, strip_whitespace=True)]
    """Text that precedes a scenario's rules in the system message."""
    traits: Annotated[dict[_TraitName, _TraitText | int | float | bool], Field(max_length=_MAX_TRAITS)] = {}
    """Traits, for people and boards: `risk: low`."""

    @field_validator("traits", mode="before")
    @classmethod
    def _check_number(cls, traits: object) -> object:
        """Limit the number of traits before each is validated, because 60,000 invalid ones took half a minute."""
        if isinstance(traits, dict) and len(traits) > _MAX_TRAITS:
            raise ValueError(f"got {len(traits):,}; allowed: at most {_MAX_TRAITS}")
        return traits

    @property
    def name(self) -> str:
        """Id and version, as in tables: `cautious:v2`."""
        return f"{self.id}:v{self.version}"


def read_persona_versions(folder: Path) -> dict[str, Persona]:
    """Read all versions of all personas of a folder, `*.yaml`, by name (`cautious:v2`); empty if the folder does not exist.

    Raises ConfigError for errors, with file and line, and for a version that occurs twice.
    """
    personas: dict[str, Persona] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = read_document(path, "persona", tuple(Persona.model_fields))
        persona = document.validate_as(Persona)
        if persona.name in personas:
            raise document.error(
                ("id",),
                f"got {persona.id}, whose version {persona.version} is also in another file of {folder}; allowed: another version",
            )
        personas[persona.name] = persona
    return personas


def select_latest_personas(versions: Iterable[Persona]) -> dict[str, Persona]:
    """Return the version in play of each persona, by id, in the order of ids: the latest that is not a draft, or the latest draft if there
    are only drafts.

    So an approved persona keeps playing while its next version is a draft, and a persona whose latest version was retired stops.
    """
    return select_versions_in_play(versions, "draft")


BASELINE_PREFIX = "baseline/"
NO_PERSONA = ""
"""Persona in tables of baselines, and of models that play as themselves."""


@dataclass(frozen=True, slots=True)
class Player:
    """The player at a seat: a model, optionally as a persona, or a baseline. Raises ConfigError if it is both or neither."""

    model: ModelSpec | None = None
    persona: Persona | None = None
    baseline: str | None = None
    """Name without `baseline/`."""

    def __post_init__(self) -> None:
        if (self.model is None) == (self.baseline is None) or (self.persona and self.baseline):
            raise ConfigError("a player is either a model, with or without a persona, or a baseline")

    @property
    def model_name(self) -> str:
        """The value of the column `model`: the model's name, or `baseline/random`."""
        return self.model.name if self.model else f"{BASELINE_PREFIX}{self.baseline}"

    @property
    def variant(self) -> str:
        """The value of the column `model_variant`; for a baseline its name."""
        return self.model.variant if self.model else self.model_name

    @property
    def persona_name(self) -> str:
        """The value of the column `persona`: id and version, or empty."""
        return self.persona.name if self.persona else NO_PERSONA

    @property
    def name(self) -> str:
        """The player's name for people, and as an opponent in tables: `cautious:v2@gpt-4.1-mini`, `gpt-4.1-mini`, `baseline/random`."""
        return f"{self.persona_name}@{self.model_name}" if self.persona else self.model_name


APPROVED = "approved"
PERSONA_STATUS = "persona_status"
"""Column of boards with the persona's present status. Empty: the player has no persona, or no file has it any more."""


def require_approved(players: Iterable[Player], otherwise: str = "") -> None:
    """Raise ConfigError for draft or retired personas, with their status. `otherwise`: what is allowed other than another persona."""
    statuses = {player.persona.name: player.persona.status for player in players if player.persona is not None}
    if names := [f"{name} ({status})" for name, status in sorted(statuses.items()) if status != APPROVED]:
        raise ConfigError(f"persona {', '.join(names)}: not approved; allowed: an approved persona{otherwise}")


def list_persona_statuses(names: Iterable[str], personas: Mapping[str, Persona]) -> list[str]:
    """Return the status of each persona of a table, `cautious:v2`: draft, approved or retired; "" for no persona, and for one that is not
    in `personas`."""
    return [str(personas[name].status) if name != NO_PERSONA and name in personas else "" for name in names]


def mark_unapproved(status: object) -> str:
    """Return the note on a player whose persona is not approved: `draft persona`; "" for all others."""
    return f"{status} persona" if isinstance(status, str) and status not in ("", APPROVED) else ""
