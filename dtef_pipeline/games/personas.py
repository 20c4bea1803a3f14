"""Personas: what a model is told to be while it plays. A persona has versions; a player is one version of one, played by one model variant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.identity import versions_in_play

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
    """What the model is told in front of the rules of a scenario."""
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

    Raises ConfigError for faults, with file and line, and for a version that stands twice.
    """
    found: dict[str, Persona] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = read_document(path, "persona", tuple(Persona.model_fields))
        persona = document.checked(Persona)
        if persona.name in found:
            raise document.error(
                ("id",),
                f"got {persona.id}, of which another file of {folder} has version {persona.version}; allowed: another version",
            )
        found[persona.name] = persona
    return found


def latest_personas(versions: Iterable[Persona]) -> dict[str, Persona]:
    """The version of each persona that is in play, by id, in the order of ids: the latest that is no draft; of drafts alone, the latest.

    So a persona that was approved plays on while its next version is a draft, and one whose latest version was retired plays no more.
    """
    return versions_in_play(versions, "draft")
