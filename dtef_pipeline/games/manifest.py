"""The manifest of a scenario: `scenarios/<league>/<scenario>.yaml`, its rules in words and how it is played and weighed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import select_versions_in_play

SEVERITY_WEIGHTS = {"low": 1, "medium": 3, "high": 10}
"""What a violation counts in the weighted rate of red flags."""
ScenarioName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,40}/[a-z0-9][a-z0-9-]{0,60}$")]
ScenarioStatus = Literal["experimental", "production", "retired"]
"""From the first to the last."""
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Weight = Annotated[float, Field(ge=0)]


class Weighing(Part):
    """How a scenario is weighed: parts of a composite score by metric, and what people's votes count in it."""

    algorithmic: dict[str, Weight] = {}
    """By metric, its weight in the arithmetic mean of normalised metrics; none: there is no composite score."""
    human: Weight = 0


class Seeds(Part):
    """Which seeds are played where none are named: `count` of them from `first` on."""

    first: Annotated[int, Field(ge=0)] = 1
    count: Annotated[int, Field(ge=1)]


class ScenarioManifest(Part):
    """One scenario as people wrote it."""

    id: ScenarioName
    version: Annotated[int, Field(ge=1)]
    """A new one where the rules in words, the limits or the engine change: episodes of two versions are never averaged."""
    status: ScenarioStatus
    description: Sentence
    """One sentence for people who choose scenarios."""
    rules: Sentence
    """The rules, which every player is shown word for word."""
    constraints: list[Sentence] = []
    """What players must not do; each entry continues `You must not` and starts in lower case."""
    reply_format: Sentence
    """The form of a reply, as every player is shown it."""
    seats: Annotated[list[Sentence], Field(min_length=1, max_length=8)]
    seeds: Seeds
    opponents: list[str] = []
    """Baselines that every player meets, without `baseline/`; none: the scenario has one seat."""
    turn_limit: Annotated[int, Field(ge=1, le=1000)]
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Texts that a player may write in one turn beside the first, where those before were no move."""
    on_illegal: Literal["forfeit", "default"]
    show_legal: bool = False
    """Whether observations list the legal commands."""
    severities: dict[str, Literal["low", "medium", "high"]] = {}
    """How grave each kind of violation is, by its flag."""
    adapter: ScenarioName | None = None
    """The engine, where it is that of another scenario: `negotiation/allocation`; none: the one of the scenario's id."""
    settings: dict[str, str | int | float | bool] = {}
    """Settings of the engine: `price: second`."""
    evaluation: Weighing = Weighing()

    @field_validator("seats")
    @classmethod
    def _check_distinct_seats(cls, seats: list[str]) -> list[str]:
        if len(set(seats)) < len(seats):
            raise ValueError(f"got {', '.join(seats)}; allowed: each once")
        return seats

    @property
    def adapter_name(self) -> str:
        """Name of the entry point that makes the scenario."""
        return self.adapter or self.id

    @property
    def league(self) -> str:
        return self.id.split("/")[0]

    @property
    def scenario(self) -> str:
        return self.id.split("/")[1]


def read_manifest(path: Path) -> ScenarioManifest:
    """The manifest in a file. Raises ConfigError for its faults, with file and line, and where the id is not that of the file's place."""
    document = read_document(path, "scenario", tuple(ScenarioManifest.model_fields))
    manifest = document.validate_as(ScenarioManifest)
    if manifest.id != f"{path.parent.name}/{path.stem}":
        raise document.error(("id",), f"got {manifest.id}; allowed: {path.parent.name}/{path.stem}, as the file is called")
    return manifest


def read_manifests(folder: Path) -> dict[str, ScenarioManifest]:
    """All manifests below a folder, `<league>/<scenario>.yaml`, by id. Raises ConfigError for the first with faults."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; allowed: one with <league>/<scenario>.yaml")
    return {manifest.id: manifest for manifest in map(read_manifest, sorted(folder.glob("*/*.yaml")))}


def select_manifests_in_play(versions: Iterable[ScenarioManifest]) -> dict[str, ScenarioManifest]:
    """The version of each scenario that is in play, by id, in the order of ids: the latest that is not experimental; of experimental ones
    alone, the latest.
    """
    return select_versions_in_play(versions, "experimental")
