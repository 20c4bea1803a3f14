"""Players: a persona that a model plays, a model without one, or a baseline, which is free and always plays alike."""

from __future__ import annotations

from dataclasses import dataclass

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.personas import Persona

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
